// ex2: 2^x as Hopper's instructions ex2.approx.ftz.f32 and ex2.approx.f32 return it.
//
// Compared with an H200 on all 2^32 operands; the tables also with an H100
// (docs/function_units.md).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/subnormals.hpp"
#include "numerics/hardware/function_units/tables/ex2_table.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// |x| in units of 2^-23, truncated. Requires 2^-126 <= |x| < 2^9.
SAMEBITS_INLINE constexpr std::uint32_t fixed_point_of(std::uint32_t x) {
  const std::uint32_t significand = (x & fraction_mask) | binary32::min_normal;
  const int up = exponent_field(x) - 127;
  if (up >= 0) return significand << up;
  return up < -31 ? 0u : significand >> -up;
}

/// ex2.approx.ftz.f32. Operand and result are binary32 bits.
SAMEBITS_HD constexpr std::uint32_t ex2_approx_ftz(std::uint32_t x) {
  const bool negative = sign_of(x) != 0;
  const std::uint32_t beyond = negative ? 0u : binary32::inf;  // of the result's range
  if (binary32::is_nan(x)) return binary32::nan;
  if (exponent_field(x) == 0) return binary32::one;
  if (exponent_field(x) >= 127 + 9) return beyond;
  // A negative operand with a fraction: the unit inverts all bits of the magnitude, which gives
  // -|x| - 2^-23. Its whole part is rounded down.
  const std::uint32_t magnitude = fixed_point_of(x);
  const bool inverted = negative && (magnitude & fraction_mask) != 0;
  const std::uint32_t fraction = (inverted ? ~magnitude : magnitude) & fraction_mask;
  const int whole = static_cast<int>(magnitude >> 23);
  const int field = 127 + (negative ? -whole - (inverted ? 1 : 0) : whole);
  if (field >= 255 || field <= 0) return beyond;
  const table_position at = position_of(fraction, 6);
  return join(0, field, interpolate(ex2_row(at.row), at.x) >> 17);
}

/// ex2.approx.f32: the unit's result at x; below -126 the square of its result at x / 2.
SAMEBITS_HD constexpr std::uint32_t ex2_approx(std::uint32_t x) {
  constexpr std::uint32_t lowest = 0xC2FC0000u;  // -126
  const bool small = x > lowest && !binary32::is_nan(x);
  if (!small) return ex2_approx_ftz(x);
  const std::uint32_t root = ex2_approx_ftz(binary32::multiply(x, power_of_two(-1)));
  return binary32::multiply(root, root);
}

}  // namespace samebits::numerics::hopper
