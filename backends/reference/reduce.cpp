// tree_sum: the binary64 sum tree of contract §6.
#include "samebits/reduce.hpp"

#include "backends/build_flags.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test.hpp"

namespace samebits {

void tree_sum::push(double leaf) {
  // As in binary counting: every set low bit of count_ is a left neighbour waiting to be joined.
  double node = leaf;
  int level = 0;
  for (std::uint64_t waiting = count_; (waiting & 1) != 0; waiting >>= 1) {
    node = nodes_[level++] + node;
  }
  nodes_[level] = node;
  ++count_;
}

void tree_sum::add(std::span<const double> leaves) {
  backends::require_tested(backends::reference);
  for (const double leaf : leaves) push(leaf);
}

void tree_sum::add_squares(std::span<const double> values) {
  backends::require_tested(backends::reference);
  for (const double x : values) {
    const double square = x * x;
    push(square);
  }
}

double tree_sum::value() const {
  backends::require_tested(backends::reference);
  // What is left of each level is its last node: the right neighbour of the next one above.
  double sum = 0.0;
  bool any = false;
  for (int level = 0; level < 64; ++level) {
    if (((count_ >> level) & 1) == 0) continue;
    sum = any ? nodes_[level] + sum : nodes_[level];
    any = true;
  }
  return sum;
}

}  // namespace samebits
