// Subnormals: the steps around a function unit that keep subnormal numbers, without .ftz.
//
// The units flush subnormal operands and results to zero. For an instruction without .ftz the
// assembler ptxas 13.0 (sm_90) puts a scaling by a power of two before the unit, and its inverse
// after the unit. The steps are binary32 operations rounded to nearest even, read from its machine
// code.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// 2^k as binary32, -126 <= k <= 127.
SAMEBITS_INLINE constexpr std::uint32_t power_of_two(int k) {
  return static_cast<std::uint32_t>(k + 127) << 23;
}

/// Whether the steps scale an operand up: |x| < 2^-126, zeros included.
SAMEBITS_INLINE constexpr bool below_normal(std::uint32_t x) {
  return binary32::magnitude(x) < binary32::min_normal;
}

}  // namespace samebits::numerics::hopper
