// Truncated number: a fixed-point sum as binary32, as the units lg2, sin and tanh return it.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// magnitude * 2^-unit with 24 significant bits, truncated. Requires magnitude > 0 and a normal
/// result.
SAMEBITS_INLINE constexpr std::uint32_t truncated_number(std::uint32_t sign,
                                                         std::uint64_t magnitude, int unit) {
  const int top = 63 - static_cast<int>(leading_zeros(magnitude));  // the place of the leading bit
  const std::uint64_t significand = top >= 23 ? magnitude >> (top - 23) : magnitude << (23 - top);
  return join(sign, 127 + top - unit, static_cast<std::uint32_t>(significand) & fraction_mask);
}

}  // namespace samebits::numerics::hopper
