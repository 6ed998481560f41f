// Reductions in a fixed order: the same bits for any chunking.
#pragma once

#include <cstdint>
#include <span>

namespace samebits {

/// A binary64 sum over a fixed tree (contract §6).
///
/// Leaves are the added numbers in order. Level by level neighbours 2j and 2j+1 become
/// RN64(a + b), and a lone last node passes up unchanged; an empty sum is +0. The result depends
/// on the sequence alone, not on how it is cut into add() calls. A sum that is NaN is the canonical
/// one, 7FFFFFFFFFFFFFFF.
///
/// add, add_squares, add_node and value throw environment_error, leaving the sum as it was, in a
/// process or thread that does not compute in IEEE 754 steps (samebits/self_test.hpp).
class tree_sum {
 public:
  /// Appends leaves.
  void add(std::span<const double> leaves);
  /// Appends one leaf.
  void add(double leaf) { add(std::span<const double>(&leaf, 1)); }
  /// Appends the leaves RN64(x * x).
  void add_squares(std::span<const double> values);
  /// Appends 2^level leaves by their node in the tree: what the sum of them alone is. Throws
  /// invalid_argument unless the node stands there, that is unless count() is a multiple of
  /// 2^level, and for levels outside 0..62 and more than 2^63 leaves.
  void add_node(int level, double node);

  /// Leaves so far.
  [[nodiscard]] std::uint64_t count() const { return count_; }
  /// The sum of the leaves so far.
  [[nodiscard]] double value() const;

 private:
  void push(int level, double node);

  // Bit l of count_ says whether a complete node of 2^l leaves waits in nodes_[l].
  std::uint64_t count_ = 0;
  double nodes_[64] = {};
};

}  // namespace samebits
