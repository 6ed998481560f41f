// Squares: squares of binary32 numbers and their sums in binary64, in integers.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// RN64(x * x) of binary32 bits, which is exact. A NaN gives the canonical NaN.
SAMEBITS_INLINE constexpr std::uint64_t square(std::uint32_t x) {
  const std::uint32_t m = binary32::magnitude(x);
  if (m > binary32::inf) return binary64::nan;
  const std::uint64_t wide = binary64::widen(m);
  return binary64::multiply(wide, wide);
}

/// RN64(left + right) of two partial sums of squares. Any NaN input gives the canonical NaN.
SAMEBITS_INLINE constexpr std::uint64_t add_squares(std::uint64_t left, std::uint64_t right) {
  if (left > binary64::inf || right > binary64::inf) return binary64::nan;
  return binary64::add(left, right);
}

}  // namespace samebits::numerics
