// Shard tree: how the sum over a tensor that is sharded across ranks is split into partial sums,
// and how these are combined.
//
// The partial sums belong to the tree over the tensor's chunks (numerics/sums/sum_tree.hpp). The
// inputs are squares and therefore >= +0, so the tree may be padded with +0 to any length. A slot
// is the partial sum of 1024 chunks, the work of one thread block.
//
// A rank sends a slot as one value if the rank has the whole slot, or if no rank has the missing
// end. If several ranks share a slot, each sends the largest partial sums that lie in its own part.
#pragma once

#include <cstdint>

#include "numerics/sums/sum_tree.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics {

inline constexpr int slot_level = 10;
inline constexpr std::uint64_t slot_chunks = std::uint64_t{1} << slot_level;

/// Whether a part reaches the end of its tensor or other chunks follow it.
enum class part_end : std::uint8_t { of_tensor, before_others };

/// The level, in chunks, of the largest partial sum that begins at `chunk` and lies in a part
/// ending at chunk `end`. At most slot_level.
SAMEBITS_INLINE constexpr int shard_sum_level(std::uint64_t chunk, std::uint64_t end,
                                              part_end what) {
  int level = 0;
  while (level < slot_level && ((chunk >> level) & 1) == 0 &&
         (what == part_end::of_tensor || chunk + (std::uint64_t{2} << level) <= end)) {
    ++level;
  }
  return level;
}

/// Calls f(chunk, chunks, level) from left to right for each partial sum of a part: the chunks
/// [begin, end) of a tensor. `chunks` is how many of the 2^level chunks exist.
template <class Function>
constexpr void for_each_shard_sum(std::uint64_t begin, std::uint64_t end, part_end what,
                                  const Function& f) {
  for (std::uint64_t chunk = begin; chunk < end;) {
    const int level = shard_sum_level(chunk, end, what);
    const std::uint64_t left = end - chunk, maximum = std::uint64_t{1} << level;
    const std::uint64_t chunks = left < maximum ? left : maximum;
    f(chunk, chunks, level);
    chunk += chunks;
  }
}

/// The position of a partial sum in the concatenated messages of all ranks.
struct received_sum {
  std::uint64_t word = 0;   ///< index of its 8-byte word, counted from the first word of rank 0
  std::uint32_t level = 0;  ///< level in chunks
  std::uint32_t reserved = 0;
};

/// Combines the partial sums partial_sums[0 .. count) to the partial sum of their slot, an aligned
/// group of 1024 chunks. The partial sums must be in chunk order and without gaps. They must cover
/// the slot from its first chunk to its last chunk or the tensor's last chunk. value_at(word)
/// returns the value of one partial sum.
template <class Partial, class ValueAt, class Add>
SAMEBITS_HD constexpr Partial slot_sum(const received_sum* partial_sums, std::uint64_t count,
                                       const ValueAt& value_at, const Add& add) {
  if (count == 1) return value_at(partial_sums[0].word);
  constexpr int batch = 8;  // values loaded together, so that the loads overlap
  Partial waiting[slot_level + 1] = {};
  std::uint64_t chunks = 0;
  for (std::uint64_t first = 0; first < count; first += batch) {
    Partial values[batch] = {};
    int levels[batch] = {};
    for (int k = 0; k < batch; ++k) {
      if (first + static_cast<std::uint64_t>(k) >= count) continue;
      const received_sum partial_sum = partial_sums[first + static_cast<std::uint64_t>(k)];
      levels[k] = static_cast<int>(partial_sum.level);
      values[k] = value_at(partial_sum.word);
    }
    for (int k = 0; k < batch; ++k) {
      if (first + static_cast<std::uint64_t>(k) >= count) continue;
      append_partial_sum(waiting, chunks, levels[k], values[k], add);
    }
  }
  return root_of_tree(waiting, chunks, Partial{}, add);
}

}  // namespace samebits::numerics
