// Sharded sums: splits each rank's part into the largest subtrees and combines all subtrees to the
// full tree.
#include "samebits/distributed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/element.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/ranks/ranks.hpp"
#include "backends/ranks/shard_cover.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/self_test.hpp"
#include "samebits/convert.hpp"

namespace samebits {
namespace {

/// The largest n such that a subtree of 2^n chunks begins at `chunk` and has at most `count`
/// chunks.
int largest_subtree(std::uint64_t chunk, std::uint64_t count) {
  const int fits = 63 - std::countl_zero(count);
  return chunk == 0 ? fits : std::min(std::countr_zero(chunk), fits);
}

/// Calls f(level) for the subtrees of a part from left to right. The last chunk may be partial.
template <class Function>
void for_each_subtree(std::uint64_t first, std::uint64_t count, const Function& f) {
  std::uint64_t chunk = first / chunk_inputs;
  for (std::uint64_t left = count / chunk_inputs; left > 0;) {
    const int level = largest_subtree(chunk, left);
    f(level);
    chunk += std::uint64_t{1} << level;
    left -= std::uint64_t{1} << level;
  }
  if (count % chunk_inputs != 0) f(0);
}

std::uint64_t subtree_count(std::uint64_t first, std::uint64_t count) {
  std::uint64_t subtrees = 0;
  for_each_subtree(first, count, [&](int) { ++subtrees; });
  return subtrees;
}

/// One rank's part of one tensor, as stored in its message.
struct received_part : backends::rank_part {
  const std::uint64_t* values;  ///< values of its subtrees, binary64 bits
};

/// The messages of all ranks, and where the values of each one begin.
class received_parts {
 public:
  received_parts(std::span<const std::uint64_t> words, std::size_t ranks, std::size_t tensors)
      : words_(words), each_(words.size() / ranks), values_(ranks) {
    for (std::size_t r = 0; r < ranks; ++r) values_[r] = words.data() + r * each_ + 2 * tensors;
  }

  /// The parts of the next tensor, in the order of their inputs.
  std::vector<received_part> next() {
    std::vector<received_part> parts;
    for (std::size_t r = 0; r < values_.size(); ++r) {
      const std::uint64_t* const entry = words_.data() + r * each_ + 2 * tensor_;
      if (entry[1] == 0) continue;
      parts.push_back({{entry[0], entry[1], r}, values_[r]});
      values_[r] += subtree_count(entry[0], entry[1]);
    }
    backends::order_parts(parts, "sum_shards(): tensor " + std::to_string(tensor_), "inputs");
    ++tensor_;
    return parts;
  }

 private:
  std::span<const std::uint64_t> words_;
  std::size_t each_;
  std::size_t tensor_ = 0;
  std::vector<const std::uint64_t*> values_;
};

/// The message of a rank: first input and count of each part, then the values of the subtrees.
std::vector<std::uint64_t> message_of(std::span<const tree_part> parts) {
  std::vector<std::uint64_t> message;
  for (const tree_part& p : parts) {
    message.push_back(p.first());
    message.push_back(p.count());
  }
  for (const tree_part& p : parts) {
    for (const double value : p.subtrees()) {
      message.push_back(std::bit_cast<std::uint64_t>(value));
    }
  }
  return message;
}

/// The messages of all ranks, each padded to the longest one.
std::vector<std::uint64_t> exchanged(backends::host_ranks& ranks,
                                     std::span<const tree_part> parts) {
  std::vector<std::uint64_t> mine;
  std::array<std::uint32_t, 3> sizes = {};
  // Words: the longest message, and max and min number of tensors.
  backends::check_together(ranks, "sum_shards()", sizes, [&] {
    backends::require_tested(backends::reference);
    mine = message_of(parts);
    refuse_if(mine.size() > 0xFFFFFFFFu, "parts: more than 2^32 - 1 subtrees");
    sizes = {static_cast<std::uint32_t>(mine.size()), static_cast<std::uint32_t>(parts.size()),
             ~static_cast<std::uint32_t>(parts.size())};
  });
  require<rank_error>(sizes[1] == ~sizes[2], "sum_shards(): the ranks' lists have between ",
                      ~sizes[2], " and ", sizes[1],
                      " tensors; each must list all, those without elements of its own too");
  mine.resize(sizes[0]);
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

tree_part::tree_part(std::uint64_t first) : first_(first) {
  require(first % chunk_inputs == 0 && first < std::uint64_t{1} << 62,
          "first: a part must begin on a chunk's first input, a multiple of 4096 below 2^62, got ",
          first);
}

void tree_part::add_partial_sum(int level, double partial_sum) {
  std::uint64_t subtree = (first_ / chunk_inputs + chunks_) >> level;
  chunks_ += std::uint64_t{1} << level;
  // A right subtree whose left neighbour is waiting is combined with it.
  for (; !levels_.empty() && levels_.back() == level && (subtree & 1) != 0;
       subtree >>= 1, ++level) {
    tree_sum pair;
    pair.add(partial_sums_.back());
    pair.add(partial_sum);
    partial_sum = pair.value();
    partial_sums_.pop_back();
    levels_.pop_back();
  }
  partial_sums_.push_back(partial_sum);
  levels_.push_back(level);
}

void tree_part::fill_chunk(std::span<const double> values,
                           void (tree_sum::*append)(std::span<const double>)) {
  backends::require_tested(backends::reference);
  while (!values.empty()) {
    const auto room = static_cast<std::size_t>(chunk_inputs - tail_.count());
    const std::size_t n = std::min(room, values.size());
    (tail_.*append)(values.first(n));
    values = values.subspan(n);
    if (tail_.count() < chunk_inputs) return;
    add_partial_sum(0, tail_.value());
    tail_ = tree_sum();
  }
}

void tree_part::add(std::span<const double> inputs) { fill_chunk(inputs, &tree_sum::add); }

void tree_part::add_squares(std::span<const double> values) {
  fill_chunk(values, &tree_sum::add_squares);
}

void tree_part::add_squares(const const_matrix_view& elements) {
  backends::check_view(elements, "elements");
  backends::check_host(elements, "elements");
  backends::require_tested(backends::reference);
  if (backends::is_empty(elements)) return;
  constexpr std::int64_t chunk = 4096;
  std::vector<double> values;
  for (std::int64_t r = 0; r < elements.rows; ++r) {
    for (std::int64_t c = 0; c < elements.cols; c += chunk) {
      const const_matrix_view v =
          backends::part_of(elements, r, c, 1, std::min(chunk, elements.cols - c));
      values.resize(static_cast<std::size_t>(v.cols));
      convert(v, view_of(values));
      add_squares(values);
    }
  }
}

void tree_part::add_chunks(std::span<const double> partial_sums) {
  refuse_if(tail_.count() != 0,
            "partial_sums: chunks begin at multiples of 4096 inputs, the part has ", count());
  backends::require_tested(backends::reference);
  for (const double partial_sum : partial_sums) add_partial_sum(0, partial_sum);
}

void tree_part::add_subtree(std::uint64_t chunks, double value) {
  refuse_if(!std::has_single_bit(chunks) || chunks > std::uint64_t{1} << 49,
            "chunks: must be a power of two up to 2^49, got ", chunks);
  const std::uint64_t at = first_ + count();
  refuse_if(at % chunk_inputs != 0 || (at / chunk_inputs) % chunks != 0, "chunks: a subtree of ",
            chunks, " chunks begins at a multiple of 4096 * ", chunks, " inputs, the part is at ",
            at);
  backends::require_tested(backends::reference);
  add_partial_sum(std::countr_zero(chunks), value);
}

std::vector<double> tree_part::subtrees() const {
  std::vector<double> values = partial_sums_;
  if (tail_.count() != 0) values.push_back(tail_.value());
  return values;
}

sharded_sums sum_shards(communicator& ranks, std::span<const tree_part> parts) {
  backends::host_ranks on_host(ranks);
  const std::vector<std::uint64_t> words = exchanged(on_host, parts);
  received_parts received(words, static_cast<std::size_t>(ranks.size()), parts.size());
  sharded_sums sums;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    tree_sum chunks;
    std::uint64_t count = 0;
    for (const received_part& p : received.next()) {
      const std::uint64_t* value = p.values;
      for_each_subtree(p.first, p.count, [&](int level) {
        chunks.add_partial_sum(level, std::bit_cast<double>(*value++));
      });
      count += p.count;
    }
    sums.of_tensors.push_back(chunks.value());
    sums.counts.push_back(count);
  }
  tree_sum total;
  total.add(sums.of_tensors);
  sums.total = total.value();
  return sums;
}

}  // namespace samebits
