// sqrt: sqrt(x) as Hopper's instructions sqrt.approx.ftz.f32 and sqrt.approx.f32 return it.
//
// Compared with an H200 on all 2^32 operands (docs/function_units.md).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/subnormals.hpp"
#include "numerics/hardware/function_units/tables/sqrt_table.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// sqrt.approx.ftz.f32. Operand and result are binary32 bits.
SAMEBITS_HD constexpr std::uint32_t sqrt_approx_ftz(std::uint32_t x) {
  if (binary32::is_nan(x)) return binary32::nan;
  if (exponent_field(x) == 0) return sign_of(x);
  if (sign_of(x) != 0) return binary32::nan;
  if (x == binary32::inf) return binary32::inf;
  const int exponent = exponent_field(x) - 127;
  const bool odd = (exponent & 1) != 0;
  const int field = 127 + (exponent >> 1);  // rounded down
  const std::uint32_t fraction = x & fraction_mask;
  if (!odd && fraction == 0) return join(0, field, 0);  // exact
  const table_position at = position_of(fraction, 6);
  const unit_row row = odd ? sqrt_odd_row(at.row) : sqrt_even_row(at.row);
  return join(0, field, interpolate(row, at.x) >> 18);
}

/// sqrt.approx.f32: below 2^-126 the unit's result at x * 2^24, times 2^-12.
SAMEBITS_HD constexpr std::uint32_t sqrt_approx(std::uint32_t x) {
  if (!below_normal(x)) return sqrt_approx_ftz(x);
  const std::uint32_t root = sqrt_approx_ftz(binary32::multiply(x, power_of_two(24)));
  return binary32::multiply(root, power_of_two(-12));
}

}  // namespace samebits::numerics::hopper
