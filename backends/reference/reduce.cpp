// tree_sum: the binary64 sum tree of contract §6.
#include "samebits/reduce.hpp"

#include "backends/build_flags.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test.hpp"
#include "numerics/sum_tree.hpp"

namespace samebits {

namespace {
double sum_of(double left, double right) { return left + right; }
}  // namespace

void tree_sum::push(double leaf) { numerics::append_leaf(nodes_, count_, leaf, sum_of); }

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
  return numerics::root_of_tree(nodes_, count_, 0.0, sum_of);
}

}  // namespace samebits
