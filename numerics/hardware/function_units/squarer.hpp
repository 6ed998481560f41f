// Squarer: the truncated square that a function unit multiplies its quadratic coefficient by.
//
// The fraction is 0.x1 x2 ... x17 in binary. Its square is a sum of partial products: x_i of weight
// 2^-2i, and x_i * x_j of weight 2^-(i+j-1) for i < j. The unit leaves out every partial product of
// weight below 2^-15, before the sum (Oberman and Siu, ARITH 17).
//
//   i   kept partial products
//   1   x1 2^-2    x1 x2 2^-2    x1 x3 2^-3    ...    x1 x15 2^-15
//   2   x2 2^-4    x2 x3 2^-4    ...    x2 x14 2^-15
//   ...
//   7   x7 2^-14   x7 x8 2^-14   x7 x9 2^-15
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// The truncated square of x / 2^17, in units of 2^-15. Requires x < 2^17.
SAMEBITS_INLINE constexpr std::uint32_t truncated_square(std::uint32_t x) {
  std::uint32_t square = 0;
  for (int i = 1; i <= 7; ++i) {
    const std::uint32_t bit = (x >> (17 - i)) & 1;  // x_i
    const std::uint32_t lower = (x & ((1u << (17 - i)) - 1)) >> (i + 1);
    square += bit * ((1u << (15 - 2 * i)) + lower);
  }
  return square;
}

}  // namespace samebits::numerics::hopper
