// Binary32 operations of a gradient reduction on arrays: implementation.
#include "backends/reference/reductions/rank_sum.hpp"

#include <cstddef>

#include "backends/self_test/build_flags.hpp"

namespace samebits::backends {

void multiply_each(std::span<float> x, float factor) {
  for (float& v : x) v *= factor;
}

void divide_each(std::span<float> x, float divisor) {
  for (float& v : x) v /= divisor;
}

void add_each(std::span<float> total, std::span<const float> next) {
  for (std::size_t i = 0; i < total.size(); ++i) total[i] += next[i];
}

}  // namespace samebits::backends
