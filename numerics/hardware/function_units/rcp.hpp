// rcp: 1 / x as Hopper's instructions rcp.approx.ftz.f32 and rcp.approx.f32 return it.
//
// Compared with an H200 on all 2^32 operands; the tables also with an H100
// (docs/function_units.md).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/subnormals.hpp"
#include "numerics/hardware/function_units/tables/rcp_table.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// rcp.approx.ftz.f32. Operand and result are binary32 bits.
SAMEBITS_INLINE constexpr std::uint32_t rcp_approx_ftz(std::uint32_t x) {
  if (binary32::is_nan(x)) return binary32::nan;
  if (binary32::is_inf(x)) return sign_of(x);
  if (exponent_field(x) == 0) return sign_of(x) | binary32::inf;
  const std::uint32_t fraction = x & fraction_mask;
  const bool exact = fraction == 0;  // a power of two
  const int field = 2 * 127 - exponent_field(x) - (exact ? 0 : 1);
  if (field <= 0) return sign_of(x);
  if (exact) return join(sign_of(x), field, 0);
  const table_position at = position_of(fraction, 7);
  return join(sign_of(x), field, interpolate(rcp_row(at.row), at.x) >> 17);
}

/// rcp.approx.f32: x and the result are scaled by 1/4 above 2^126, and by 2^24 below 2^-126.
SAMEBITS_HD constexpr std::uint32_t rcp_approx(std::uint32_t x) {
  const bool large = binary32::magnitude(x) > power_of_two(126) && !binary32::is_nan(x);
  if (!large && !below_normal(x)) return rcp_approx_ftz(x);
  const std::uint32_t scale = large ? power_of_two(-2) : power_of_two(24);
  return binary32::multiply(scale, rcp_approx_ftz(binary32::multiply(x, scale)));
}

}  // namespace samebits::numerics::hopper
