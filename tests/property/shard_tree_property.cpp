// The step of a scaler over shards, as its kernels take it: partial sums of any cut, laid out by
// shard_layout and put together by slots, against the tree level by level and against sum_shards().
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "backends/dispatch/access.hpp"
#include "backends/ranks/shard_layout.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "samebits/distributed.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/tensor_list.hpp"
#include "samebits/testkit/ranks.hpp"
#include "support/level_sum.hpp"
#include "support/property.hpp"

namespace samebits {
namespace {

using support::level_by_level;

constexpr double inf = std::numeric_limits<double>::infinity();
static_assert(numerics::slot_chunks == 1024);

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

/// A tensor by the sums of squares of its chunks, and its borders: shard s of it is
/// [borders[s], borders[s + 1]) chunks, and lies on rank (s + turn) % ranks.
struct random_tensor {
  std::vector<double> chunks;
  std::vector<std::size_t> borders;
  std::size_t turn;
  std::int64_t in_last_chunk;  ///< elements

  [[nodiscard]] std::size_t shard_of(std::size_t rank, std::size_t ranks) const {
    return (rank + ranks - turn % ranks) % ranks;
  }
  [[nodiscard]] std::uint64_t begin(std::size_t shard) const { return 4096 * borders[shard]; }
  [[nodiscard]] std::int64_t count(std::size_t shard) const {
    const auto in = static_cast<std::int64_t>(borders[shard + 1] - borders[shard]);
    if (in == 0) return 0;
    return borders[shard + 1] == chunks.size() ? (in - 1) * 4096 + in_last_chunk : in * 4096;
  }
  [[nodiscard]] std::span<const double> of_shard(std::size_t shard) const {
    return std::span(chunks).subspan(borders[shard], borders[shard + 1] - borders[shard]);
  }
};

/// Chunks: none, a few, around a slot, and several slots.
random_tensor draw(std::mt19937_64& random, std::size_t ranks) {
  const std::size_t sizes[] = {0,    1,    1 + random() % 40,  1023 + random() % 3,
                               2048, 2049, 1 + random() % 3500};
  random_tensor t;
  t.chunks.resize(sizes[random() % std::size(sizes)]);
  for (double& c : t.chunks) {
    c = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 200) - 120);
  }
  if (!t.chunks.empty() && random() % 12 == 0) {
    t.chunks[random() % t.chunks.size()] = random() % 2 == 0 ? inf : std::nan("");
  }
  t.borders = {0, t.chunks.size()};
  for (std::size_t i = 1; i < ranks; ++i) t.borders.push_back(random() % (t.chunks.size() + 1));
  std::sort(t.borders.begin(), t.borders.end());
  t.turn = random() % ranks;
  t.in_last_chunk = 1 + static_cast<std::int64_t>(random() % 4096);
  return t;
}

/// Memory that lists describe and nobody reads.
const std::byte* untouched() {
  static const auto memory =
      std::make_unique_for_overwrite<std::byte[]>(std::size_t{5} * 3600 * 4096);
  return memory.get();
}

tensor_list list_of(const std::vector<random_tensor>& tensors, std::size_t rank,
                    std::size_t ranks) {
  std::vector<matrix_view> views;
  auto* next = const_cast<std::byte*>(untouched());
  for (const random_tensor& t : tensors) {
    const std::int64_t count = t.count(t.shard_of(rank, ranks));
    views.push_back({count == 0 ? nullptr : next, format_id::e4m3, 1, count, count, 1});
    next += count;
  }
  return tensor_list(views);
}

/// What a rank sends: the values of its partial sums, by the definition.
std::vector<std::uint64_t> message_of(const shard_layout& layout,
                                      const std::vector<random_tensor>& tensors) {
  const backends::shard_data& d = backends::data_of(layout);
  std::vector<double> own;  // chunks of this rank's list, in its numbering
  for (const random_tensor& t : tensors) {
    const auto here =
        t.of_shard(t.shard_of(static_cast<std::size_t>(d.rank), static_cast<std::size_t>(d.ranks)));
    own.insert(own.end(), here.begin(), here.end());
  }
  std::vector<std::uint64_t> message(d.message_words, 0xBADBADBADu);
  std::size_t word = backends::shard_data::first_value;
  std::size_t covered = 0;
  for (const backends::own_sum& n : d.own) {
    RC_ASSERT(n.first_chunk == covered && n.chunks >= 1 && n.chunks <= numerics::slot_chunks);
    covered += n.chunks;
    numerics::square_sum sum;
    for (std::uint64_t c = 0; c < n.chunks; ++c) sum.add(bits(own[n.first_chunk + c]));
    message[word++] = sum.value();
  }
  RC_ASSERT(covered == own.size());
  return message;
}

/// What a rank makes of all messages.
double combined(const shard_layout& layout, const std::vector<std::uint64_t>& received) {
  const backends::shard_data& d = backends::data_of(layout);
  const auto add = [](std::uint64_t a, std::uint64_t b) { return numerics::add_squares(a, b); };
  const auto value_at = [&](std::uint64_t word) { return received[word]; };
  numerics::square_sum total;
  for (std::size_t t = 0; t < layout.size(); ++t) {
    numerics::square_sum of_tensor;
    for (std::uint64_t s = d.slot_of_tensor[t]; s < d.slot_of_tensor[t + 1]; ++s) {
      const std::uint64_t first = d.partial_sum_of_slot[s];
      of_tensor.add(numerics::slot_sum<std::uint64_t>(
          d.partial_sums.data() + first, d.partial_sum_of_slot[s + 1] - first, value_at, add));
    }
    total.add(of_tensor.value());
  }
  return std::bit_cast<double>(total.value());
}

/// The sum by the ranks' parts on the host; the last partial sum stands for its elements.
double summed_on_host(communicator& ranks, const std::vector<random_tensor>& tensors) {
  std::vector<tree_part> parts;
  for (const random_tensor& t : tensors) {
    const auto n = static_cast<std::size_t>(ranks.size());
    const std::size_t shard = t.shard_of(static_cast<std::size_t>(ranks.rank()), n);
    parts.emplace_back(t.begin(shard));
    const auto all = t.of_shard(shard);
    const bool cut = !all.empty() && t.borders[shard + 1] == t.chunks.size();
    parts.back().add_chunks(all.first(all.size() - (cut ? 1 : 0)));
    if (cut) parts.back().add(all.last(1));
  }
  return sum_shards(ranks, parts).total;
}

step_report decided(double squares, double max_norm) {
  const native_scaling settings;
  numerics::resident_scaler<native_state> scaler = {initial_state(settings), 0, 0};
  const rank_observation seen = {.seen = {.nonfinite = false, .amax = 0x3F800000u}};
  return decide(settings, scaler, seen, {squares, max_norm});
}

TEST(ShardTreeProperty, AnyCutGivesTheNormAndFactorOfOnePlace) {
  support::expect_holds("any cut", 3000, [] {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    const auto n = static_cast<std::size_t>(*rc::gen::element(1, 2, 3, 8));
    std::vector<random_tensor> tensors(random() % 5);
    for (random_tensor& t : tensors) t = draw(random, n);
    std::vector<double> sums;
    for (const random_tensor& t : tensors) sums.push_back(level_by_level(t.chunks));
    const double wanted = level_by_level(sums);
    const double norm = std::sqrt(wanted) / 65536;  // the initial scale, a power of two
    const double max_norm = random() % 3 == 0 ? inf : norm * 0.75;

    std::vector<double> got(n), on_host(n);
    std::vector<std::size_t> bytes(n);
    testkit::simulate_ranks(static_cast<int>(n), [&](communicator& ranks) {
      const auto r = static_cast<std::size_t>(ranks.rank());
      std::vector<std::uint64_t> first;
      for (const random_tensor& t : tensors) first.push_back(t.begin(t.shard_of(r, n)));
      const shard_layout layout(ranks, list_of(tensors, r, n), first);
      const std::vector<std::uint64_t> sent = message_of(layout, tensors);
      std::vector<std::uint64_t> received(sent.size() * n);
      ranks.all_gather(std::as_bytes(std::span(sent)), std::as_writable_bytes(std::span(received)));
      got[r] = combined(layout, received);
      bytes[r] = layout.message_bytes();
      on_host[r] = summed_on_host(ranks, tensors);
    });
    for (std::size_t r = 0; r < n; ++r) {
      RC_ASSERT(bits(got[r]) == bits(wanted));
      RC_ASSERT(bits(on_host[r]) == bits(wanted));
      RC_ASSERT(bytes[r] == bytes[0]);
      const step_report report = decided(got[r], max_norm);
      if (!std::isfinite(wanted)) {
        RC_ASSERT(!report.applied && report.grad_mul == 0.0f);
        continue;
      }
      const float factor = clip_factor(norm, max_norm);
      RC_ASSERT(report.applied && bits(report.norm) == bits(norm));
      RC_ASSERT(report.grad_mul == factor * 0x1p-16f);
    }
  });
}

TEST(ShardTreeProperty, SendsAtMostTwoPartialSumsForEachLevelOfASharedSlot) {
  support::expect_holds("few partial sums", 2000, [] {
    std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
    const std::uint64_t begin = random() % 5000, end = begin + 1 + random() % 5000;
    const auto what =
        random() % 2 == 0 ? numerics::part_end::of_tensor : numerics::part_end::before_others;
    std::uint64_t next = begin, partial_sums = 0, whole_slots = 0;
    numerics::for_each_shard_sum(
        begin, end, what, [&](std::uint64_t chunk, std::uint64_t chunks, int level) {
          RC_ASSERT(chunk == next && chunk % (std::uint64_t{1} << level) == 0);
          RC_ASSERT(chunks == std::uint64_t{1} << level ||
                    (chunks < std::uint64_t{1} << level && chunk + chunks == end &&
                     what == numerics::part_end::of_tensor));
          const std::uint64_t above = std::uint64_t{2} << level;  // the next larger partial sum
          RC_ASSERT(level == numerics::slot_level || chunk % above != 0 ||
                    (what == numerics::part_end::before_others && chunk + above > end));
          next += chunks;
          ++partial_sums;
          whole_slots += level == numerics::slot_level ? 1 : 0;
        });
    RC_ASSERT(next == end);
    RC_ASSERT(partial_sums - whole_slots <= 2u * numerics::slot_level);
  });
}

}  // namespace
}  // namespace samebits
