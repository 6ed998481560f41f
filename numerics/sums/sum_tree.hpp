// Sum tree: the fixed order of additions in all sums (contract §6), for any kind of partial sum.
//
// The inputs are in index order. On each level the neighbours 2j and 2j+1 are added. A last partial
// sum without a neighbour moves up unchanged.
//
//   level 2         ((a+b)+(c+d))         e
//   level 1        (a+b)     (c+d)        e
//   inputs         a   b     c   d        e
//
// If all inputs are >= +0, padding them with +0 to any length gives an equal sum: x + 0 is x for x
// >= +0. Two uses:
// - The partial last vector of a chunk may be filled with zeros.
// - A chunk that consists of whole subtrees may leave the other subtrees out.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// Level of a chunk in the tree. Threads, thread blocks and shards distribute and exchange chunks.
inline constexpr int chunk_level = 12;
inline constexpr std::int64_t chunk_elements = std::int64_t{1} << chunk_level;

/// Appends the complete partial sum of 2^level inputs to a sum of `count` inputs. `count` must be a
/// multiple of 2^level. If bit l of count is set, waiting[l] holds a complete partial sum of 2^l
/// inputs. add(left, right) is RN(left + right).
template <class Partial, class Add>
SAMEBITS_HD constexpr void append_partial_sum(Partial* waiting, std::uint64_t& count, int level,
                                              Partial partial_sum, const Add& add) {
  // Like a binary counter: each set bit from `level` up to the first zero is a waiting left
  // neighbour.
  const std::uint64_t inputs = std::uint64_t{1} << level;
  for (std::uint64_t left = count >> level; (left & 1) != 0; left >>= 1) {
    partial_sum = add(waiting[level++], partial_sum);
  }
  waiting[level] = partial_sum;
  count += inputs;
}

/// Appends one input.
template <class Partial, class Add>
SAMEBITS_HD constexpr void append_input(Partial* waiting, std::uint64_t& count, Partial input,
                                        const Add& add) {
  append_partial_sum(waiting, count, 0, input, add);
}

/// The sum of all inputs so far; `empty` if there are none.
template <class Partial, class Add>
SAMEBITS_HD constexpr Partial root_of_tree(const Partial* waiting, std::uint64_t count,
                                           Partial empty, const Add& add) {
  // The waiting partial sum of each level is the last one of this level. It is the left neighbour
  // of the sum over the levels below.
  Partial sum = empty;
  bool any = false;
  for (int level = 0; level < 64; ++level) {
    if (((count >> level) & 1) == 0) continue;
    sum = any ? add(waiting[level], sum) : waiting[level];
    any = true;
  }
  return sum;
}

}  // namespace samebits::numerics
