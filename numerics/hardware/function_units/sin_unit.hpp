// sin unit: sin(x) and cos(x) as Hopper's instructions sin.approx.ftz.f32 and cos.approx.ftz.f32
// return them.
//
// Compared with an H200 on all 2^32 operands (docs/function_units.md). The instructions are a
// product and a unit: the product is x / (2 pi), truncated; the unit takes a number of turns.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/tables/sin_table.hpp"
#include "numerics/hardware/function_units/truncated_number.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// |x| / (2 pi) in units of 2^-25 turns, modulo 4 turns or more: the product of significands is cut
/// to 24 bits (mul.rz.f32), then to a multiple of 2^-25. Requires a finite x.
SAMEBITS_INLINE constexpr std::uint32_t turns_of(std::uint32_t x) {
  if (exponent_field(x) == 0) return 0;
  constexpr std::uint64_t one_over_two_pi = 0xA2F983;  // times 2^-26
  const std::uint64_t product = ((x & fraction_mask) | binary32::min_normal) * one_over_two_pi;
  // The product has 47 or 48 bits; its upper 24 remain.
  const int cut = (product >> 47) != 0 ? 24 : 23;
  const auto significand = static_cast<std::uint32_t>(product >> cut);
  // x = s * 2^(field - 150), so the turns are significand * 2^(field - 150 - 26 + cut).
  const int up = exponent_field(x) - 176 + cut + 25;
  if (up >= 0) return up > 31 ? 0u : significand << up;
  return up < -31 ? 0u : significand >> -up;
}

/// sin of a number of turns in units of 2^-25, with another sign if `sign` is the sign bit.
SAMEBITS_INLINE constexpr std::uint32_t sin_of_turns(std::uint32_t sign, std::uint32_t turns) {
  const std::uint32_t quadrant = (turns >> 23) & 3;
  const std::uint32_t fraction = turns & fraction_mask;
  const bool falling = (quadrant & 1) != 0;
  const std::uint32_t result_sign = sign ^ (quadrant >= 2 ? binary32::sign_bit : 0u);
  if (fraction == 0) return result_sign | (falling ? binary32::one : 0u);
  // Falling quadrants: the unit inverts all bits of the fraction.
  const table_position at = position_of(falling ? ~fraction & fraction_mask : fraction, 6);
  const std::int64_t sum = interpolate(sin_row(at.row), at.x);
  if (sum == 0) return result_sign;
  return truncated_number(result_sign, static_cast<std::uint64_t>(sum), 39);
}

/// sin.approx.ftz.f32. Operand and result are binary32 bits.
SAMEBITS_HD constexpr std::uint32_t sin_approx_ftz(std::uint32_t x) {
  if (binary32::magnitude(x) >= binary32::inf) return binary32::nan;
  return sin_of_turns(sign_of(x), turns_of(x));
}

/// cos.approx.ftz.f32: a quarter turn on.
SAMEBITS_HD constexpr std::uint32_t cos_approx_ftz(std::uint32_t x) {
  if (binary32::magnitude(x) >= binary32::inf) return binary32::nan;
  return sin_of_turns(0, turns_of(x) + 0x00800000u);
}

}  // namespace samebits::numerics::hopper
