// rsqrt: 1 / sqrt(x) as Hopper's instructions rsqrt.approx.ftz.f32 and rsqrt.approx.f32 return it.
//
// Compared with an H200 on all 2^32 operands; the tables also with an H100
// (docs/function_units.md).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/subnormals.hpp"
#include "numerics/hardware/function_units/tables/rsqrt_table.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// rsqrt.approx.ftz.f32. Operand and result are binary32 bits.
SAMEBITS_HD constexpr std::uint32_t rsqrt_approx_ftz(std::uint32_t x) {
  if (binary32::is_nan(x)) return binary32::nan;
  if (exponent_field(x) == 0) return sign_of(x) | binary32::inf;
  if (sign_of(x) != 0) return binary32::nan;
  if (x == binary32::inf) return 0;
  const int exponent = exponent_field(x) - 127;
  const bool odd = (exponent & 1) != 0;
  const int half = exponent >> 1;  // rounded down
  const std::uint32_t fraction = x & fraction_mask;
  if (!odd && fraction == 0) return join(0, 127 - half, 0);  // exact
  const table_position at = position_of(fraction, 6);
  const unit_row row = odd ? rsqrt_odd_row(at.row) : rsqrt_even_row(at.row);
  return join(0, 126 - half, interpolate(row, at.x) >> 17);
}

/// rsqrt.approx.f32: below 2^-126 the unit's result at x * 2^24, times 2^12.
SAMEBITS_HD constexpr std::uint32_t rsqrt_approx(std::uint32_t x) {
  if (!below_normal(x)) return rsqrt_approx_ftz(x);
  const std::uint32_t root = rsqrt_approx_ftz(binary32::multiply(x, power_of_two(24)));
  return binary32::multiply(root, power_of_two(12));
}

}  // namespace samebits::numerics::hopper
