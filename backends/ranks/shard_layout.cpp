// shard_layout: the ranks exchange which elements they hold; each rank derives equal tables.
#include "backends/ranks/shard_layout.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/ranks/ranks.hpp"
#include "backends/ranks/shard_cover.hpp"
#include "numerics/tensor_list/list.hpp"

namespace samebits {
namespace {

using backends::rank_part;
using backends::shard_data;
using numerics::part_end;

constexpr const char* call = "shard_layout()";

std::uint64_t count_of(const tensor_list& shards, std::size_t tensor) {
  return static_cast<std::uint64_t>(backends::data_of(shards).rows[tensor].count);
}

void check_borders(const tensor_list& shards, std::span<const std::uint64_t> first) {
  refuse_if(first.size() != shards.size(), "first: must have a number for each of ", shards.size(),
            " tensors, got ", first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (count_of(shards, i) == 0) continue;
    require(first[i] % numerics::chunk_elements == 0 && first[i] < std::uint64_t{1} << 62,
            list_item{"shards", i, shards[i].name},
            ": a shard must begin at a chunk's first element, a multiple of 4096 "
            "below 2^62 of its tensor, got first[",
            i, "] = ", first[i]);
  }
}

/// First element and count of each tensor on each rank, rank by rank.
std::vector<std::uint64_t> exchanged(communicator& ranks, const tensor_list& shards,
                                     std::span<const std::uint64_t> first) {
  backends::host_ranks on_host(ranks);
  const auto tensors = static_cast<std::uint32_t>(shards.size());
  std::array<std::uint32_t, 2> sizes = {};  // max number of tensors, and complement of the min
  backends::check_together(on_host, call, sizes, [&] {
    check_borders(shards, first);
    sizes = {tensors, ~tensors};
  });
  require<rank_error>(sizes[0] == ~sizes[1], call, ": the ranks' lists have between ", ~sizes[1],
                      " and ", sizes[0],
                      " tensors; each must list all, those without elements of its own too");
  std::vector<std::uint64_t> mine;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::uint64_t count = count_of(shards, i);
    mine.push_back(count == 0 ? 0 : first[i]);
    mine.push_back(count);
  }
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  on_host.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return all;
}

/// The parts of one tensor, in element order.
std::vector<rank_part> parts_of(std::span<const std::uint64_t> words, std::size_t ranks,
                                std::size_t tensor, const std::string& text) {
  const std::size_t each = words.size() / ranks;
  std::vector<rank_part> parts;
  for (std::size_t r = 0; r < ranks; ++r) {
    const std::uint64_t* const entry = words.data() + r * each + 2 * tensor;
    if (entry[1] != 0) parts.push_back({entry[0], entry[1], r});
  }
  backends::order_parts(parts, text, "elements");
  return parts;
}

/// Appends the partial sums of tensors in list order.
class table_builder {
 public:
  table_builder(shard_data& out, int ranks)
      : out_(out), sent_(static_cast<std::size_t>(ranks), 0) {}

  void add(std::uint32_t tensor, std::uint64_t first_chunk, const std::vector<rank_part>& parts) {
    out_.slot_of_tensor.push_back(out_.partial_sum_of_slot.size());
    out_.counts.push_back(parts.empty() ? 0 : parts.back().first + parts.back().count);
    for (const rank_part& p : parts) {
      const std::uint64_t begin = p.first / numerics::chunk_elements;
      const std::uint64_t end = begin + numerics::chunks_of(static_cast<std::int64_t>(p.count));
      const part_end what = &p == &parts.back() ? part_end::of_tensor : part_end::before_others;
      numerics::for_each_shard_sum(
          begin, end, what, [&](std::uint64_t chunk, std::uint64_t chunks, int level) {
            if (chunk % numerics::slot_chunks == 0) {
              out_.partial_sum_of_slot.push_back(out_.partial_sums.size());
            }
            // Position in the rank's own message, until the message lengths are known.
            out_.partial_sums.push_back({sent_[p.rank]++, static_cast<std::uint32_t>(level), 0});
            rank_of_sum_.push_back(p.rank);
            if (p.rank != static_cast<std::size_t>(out_.rank)) return;
            out_.own.push_back(
                {first_chunk + (chunk - begin), static_cast<std::uint32_t>(chunks), tensor});
          });
    }
  }

  void finish() {
    out_.slot_of_tensor.push_back(out_.partial_sum_of_slot.size());
    out_.partial_sum_of_slot.push_back(out_.partial_sums.size());
    out_.message_words = shard_data::first_value + *std::max_element(sent_.begin(), sent_.end());
    for (std::size_t i = 0; i < out_.partial_sums.size(); ++i) {
      out_.partial_sums[i].word += rank_of_sum_[i] * out_.message_words + shard_data::first_value;
    }
  }

 private:
  shard_data& out_;
  std::vector<std::uint64_t> sent_;  ///< number of values in each rank's message
  std::vector<std::size_t> rank_of_sum_;
};

std::shared_ptr<const shard_data> made(communicator& ranks, const tensor_list& shards,
                                       std::span<const std::uint64_t> first) {
  const std::vector<std::uint64_t> words = exchanged(ranks, shards, first);
  auto out = std::make_shared<shard_data>();
  out->rank = ranks.rank();
  out->ranks = ranks.size();
  backends::fingerprint print;
  for (const std::uint64_t word : words) print.add(word);
  out->fingerprint = print.folded();
  table_builder tables(*out, ranks.size());
  for (std::size_t i = 0; i < shards.size(); ++i) {
    out->here.push_back(count_of(shards, i));
    tables.add(static_cast<std::uint32_t>(i), backends::data_of(shards).rows[i].first_chunk,
               parts_of(words, static_cast<std::size_t>(ranks.size()), i,
                        detail::cat(call, ": ", list_item{"shards", i, shards[i].name})));
  }
  tables.finish();
  return out;
}

}  // namespace

shard_layout::shard_layout(communicator& ranks, const tensor_list& shards,
                           std::span<const std::uint64_t> first)
    : data_(made(ranks, shards, first)) {}

int shard_layout::rank() const { return data_->rank; }

int shard_layout::ranks() const { return data_->ranks; }

std::size_t shard_layout::size() const { return data_->counts.size(); }

std::uint64_t shard_layout::elements(std::size_t position) const { return data_->counts[position]; }

std::size_t shard_layout::message_bytes() const { return 8 * data_->message_words; }

}  // namespace samebits
