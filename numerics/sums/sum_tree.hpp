// Sum tree: the fixed order in which sums are formed (contract §6), whatever adds two nodes.
//
// Leaves are in index order; level by level neighbours 2j, 2j+1 become their sum, and a lone last
// node passes up unchanged. Where no leaf is below +0 this is the tree over leaves padded with +0
// to any length: a node that is not negative and +0 add up to the node. So a chunk's last, partial
// vector may be filled with zeros, and a chunk that is a whole number of subtrees may leave the
// others out.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// Chunks are the nodes of this level: what threads, blocks and shards share out and exchange.
inline constexpr int chunk_level = 12;
inline constexpr std::int64_t chunk_elements = std::int64_t{1} << chunk_level;

/// Appends a complete node of 2^level leaves to a sum of `count` leaves, a multiple of that. Bit l
/// of count says whether a complete node of 2^l leaves waits in waiting[l]. add(left, right) is
/// RN(left + right).
template <class Node, class Add>
SAMEBITS_HD constexpr void append_node(Node* waiting, std::uint64_t& count, int level, Node node,
                                       const Add& add) {
  // As in binary counting: every set bit from `level` up is a left neighbour waiting to be joined.
  const std::uint64_t leaves = std::uint64_t{1} << level;
  for (std::uint64_t left = count >> level; (left & 1) != 0; left >>= 1) {
    node = add(waiting[level++], node);
  }
  waiting[level] = node;
  count += leaves;
}

/// Appends a leaf.
template <class Node, class Add>
SAMEBITS_HD constexpr void append_leaf(Node* waiting, std::uint64_t& count, Node leaf,
                                       const Add& add) {
  append_node(waiting, count, 0, leaf, add);
}

/// The sum of the leaves so far; `empty` where there are none.
template <class Node, class Add>
SAMEBITS_HD constexpr Node root_of_tree(const Node* waiting, std::uint64_t count, Node empty,
                                        const Add& add) {
  // What is left of each level is its last node: the right neighbour of the next one above.
  Node sum = empty;
  bool any = false;
  for (int level = 0; level < 64; ++level) {
    if (((count >> level) & 1) == 0) continue;
    sum = any ? add(waiting[level], sum) : waiting[level];
    any = true;
  }
  return sum;
}

}  // namespace samebits::numerics
