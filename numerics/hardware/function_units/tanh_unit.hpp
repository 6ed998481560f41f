// tanh unit: tanh(x) as Hopper's instruction tanh.approx.f32 returns it.
//
// Compared with an H200 on all 2^32 operands (docs/function_units.md). The instruction has no form
// with .ftz: a subnormal operand is the result.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/operand.hpp"
#include "numerics/hardware/function_units/tables/tanh_table.hpp"
#include "numerics/hardware/function_units/truncated_number.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// The rows of a binade [2^e, 2^(e + 1)), -8 <= e <= 2: the first row, and log2 of their number.
///
///   e      -8  -7  -6  -5  -4  -3  -2  -1   0   1   2
///   rows    1   1   1   2   2   4   4   4   8  16   8
struct tanh_binade {
  std::uint32_t first;
  int row_bits;
};
SAMEBITS_INLINE constexpr tanh_binade tanh_binade_of(int exponent) {
  if (exponent < -5) return {static_cast<std::uint32_t>(exponent + 8), 0};
  if (exponent < -3) return {static_cast<std::uint32_t>(3 + 2 * (exponent + 5)), 1};
  if (exponent < 0) return {static_cast<std::uint32_t>(7 + 4 * (exponent + 3)), 2};
  if (exponent == 0) return {19, 3};
  return exponent == 1 ? tanh_binade{27, 4} : tanh_binade{43, 3};
}

/// tanh.approx.f32. Operand and result are binary32 bits. x below 2^-8 in magnitude is the result.
SAMEBITS_HD constexpr std::uint32_t tanh_approx(std::uint32_t x) {
  if (binary32::is_nan(x)) return binary32::nan;
  const int exponent = exponent_field(x) - 127;
  if (exponent < -8) return x;
  if (exponent >= 3) return sign_of(x) | binary32::one;
  const tanh_binade binade = tanh_binade_of(exponent);
  const std::uint32_t fraction = x & fraction_mask;
  const int row_width = 23 - binade.row_bits;  // in bits; X is the upper 17 of these
  const std::uint32_t row = binade.first + (fraction >> row_width);
  const std::uint32_t place = (fraction & ((1u << row_width) - 1)) >> (row_width - 17);
  const std::int64_t sum = interpolate(tanh_row(row), place);
  return truncated_number(sign_of(x), static_cast<std::uint64_t>(sum), 40);
}

}  // namespace samebits::numerics::hopper
