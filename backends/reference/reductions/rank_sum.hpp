// Binary32 operations of a gradient reduction on arrays (contract §6). Callers must call
// require_tested() for the reference backend first.
#pragma once

#include <span>

namespace samebits::backends {

// NaN payloads are unspecified: the conversion that follows makes NaNs canonical.

void multiply_each(std::span<float> x, float factor);  ///< x = RN(x * factor)
void divide_each(std::span<float> x, float divisor);   ///< x = RN(x / divisor)
/// total = RN(total + next). `next` must be at least as long as `total`.
void add_each(std::span<float> total, std::span<const float> next);

}  // namespace samebits::backends
