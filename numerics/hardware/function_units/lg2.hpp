// lg2: log2(x) as Hopper's instructions lg2.approx.ftz.f32 and lg2.approx.f32 return it.
//
// Compared with an H200 on all 2^32 operands; the tables also with an H100
// (docs/function_units.md). Of the powers of
// two only 1 skips the table, whose first constant is slightly above 0. So lg2(2^k) is k, but
// lg2(2^-k) is above -k: two codes for k = 1, one code for larger k.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/subnormals.hpp"
#include "numerics/hardware/function_units/tables/lg2_table.hpp"
#include "numerics/hardware/function_units/truncated_number.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// sum * 2^-41, its magnitude truncated to a multiple of 2^-36 and then to 24 significant bits.
SAMEBITS_INLINE constexpr std::uint32_t truncated_logarithm(std::int64_t sum) {
  const bool negative = sum < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum) >> 5;
  if (magnitude == 0) return 0;
  return truncated_number(negative ? binary32::sign_bit : 0u, magnitude, 36);
}

/// lg2.approx.ftz.f32. Operand and result are binary32 bits.
SAMEBITS_HD constexpr std::uint32_t lg2_approx_ftz(std::uint32_t x) {
  if (binary32::is_nan(x)) return binary32::nan;
  if (exponent_field(x) == 0) return binary32::sign_bit | binary32::inf;
  if (sign_of(x) != 0) return binary32::nan;
  if (x == binary32::inf) return binary32::inf;
  if (x == binary32::one) return 0;
  const table_position at = position_of(x & fraction_mask, 6);
  const std::int64_t logarithm = interpolate(lg2_row(at.row), at.x);
  const std::int64_t exponent = exponent_field(x) - 127;
  return truncated_logarithm(exponent * (std::int64_t{1} << 41) + logarithm);
}

/// lg2.approx.f32: below 2^-126 the unit's result at x * 2^24, minus 24.
SAMEBITS_HD constexpr std::uint32_t lg2_approx(std::uint32_t x) {
  if (!below_normal(x)) return lg2_approx_ftz(x);
  constexpr std::uint32_t minus_24 = 0xC1C00000u;
  return binary32::add(lg2_approx_ftz(binary32::multiply(x, power_of_two(24))), minus_24);
}

}  // namespace samebits::numerics::hopper
