// tree_sum: the binary64 sum tree of contract §6.
#include "samebits/reductions.hpp"

#include <bit>
#include <cmath>
#include <string>

#include "backends/dispatch/refuse.hpp"
#include "backends/reference/reference.hpp"
#include "backends/self_test/build_flags.hpp"
#include "backends/self_test/self_test.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits {

namespace {
double sum_of(double left, double right) { return left + right; }
}  // namespace

void tree_sum::push(int level, double partial_sum) {
  numerics::append_partial_sum(partial_sums_, count_, level, partial_sum, sum_of);
}

void tree_sum::add(std::span<const double> inputs) {
  backends::require_tested(backends::reference);
  for (const double input : inputs) push(0, input);
}

void tree_sum::add_squares(std::span<const double> values) {
  backends::require_tested(backends::reference);
  for (const double x : values) {
    const double square = x * x;
    push(0, square);
  }
}

void tree_sum::add_partial_sum(int level, double partial_sum) {
  refuse_if(level < 0 || level > 62, "level: must be in 0..62, got ", level);
  const std::uint64_t inputs = std::uint64_t{1} << level;
  refuse_if(count_ % inputs != 0, "level: no partial sum of 2^", level, " inputs stands after ",
            count_, " inputs; that must be a multiple");
  refuse_if(count_ > (std::uint64_t{1} << 63) - inputs, "level: 2^", level,
            " more inputs make more than 2^63");
  backends::require_tested(backends::reference);
  push(level, partial_sum);
}

double tree_sum::value() const {
  backends::require_tested(backends::reference);
  const double sum = numerics::root_of_tree(partial_sums_, count_, 0.0, sum_of);
  if (std::isnan(sum)) return std::bit_cast<double>(numerics::binary64::nan);
  return sum;
}

}  // namespace samebits
