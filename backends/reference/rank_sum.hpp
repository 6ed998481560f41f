// The binary32 steps of a gradient reduction on arrays (contract §6). Callers ask require_tested()
// of the reference backend first.
#pragma once

#include <span>

namespace samebits::backends {

// Of NaNs the payload is left open: what follows is a conversion, which makes them canonical.

void multiply_each(std::span<float> x, float factor);  ///< x = RN(x * factor)
void divide_each(std::span<float> x, float divisor);   ///< x = RN(x / divisor)
/// total = RN(total + next); next is at least as long.
void add_each(std::span<float> total, std::span<const float> next);

}  // namespace samebits::backends
