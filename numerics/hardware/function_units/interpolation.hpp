// Interpolation: the quadratic polynomial that every function unit evaluates on a row of its table.
#pragma once

#include <cstdint>

#include "numerics/hardware/function_units/squarer.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::hopper {

/// Coefficients of one interval, measured. The unit of all three is the table's, a power of two.
struct unit_row {
  std::int64_t a;  ///< constant
  std::int32_t b;  ///< of X: the distance from the interval's start in units of 2^-17 interval
  std::int32_t d;  ///< of 4 q: q is the truncated square of X / 2^17 in units of 2^-15
};

/// The 23 fraction bits of an operand, cut in two: the upper bits choose a row, the lower ones are
/// the place in the row's interval.
struct table_position {
  std::uint32_t row;
  std::uint32_t x;  ///< X, in [0, 2^17)
};

/// @param row_bits  6 for tables of 64 rows, 7 for tables of 128
SAMEBITS_INLINE constexpr table_position position_of(std::uint32_t fraction, int row_bits) {
  const std::uint32_t lower = fraction & ((1u << (23 - row_bits)) - 1);
  return {fraction >> (23 - row_bits), lower << (row_bits - 6)};
}

/// The polynomial at X, in the table's unit.
SAMEBITS_INLINE constexpr std::int64_t interpolate(const unit_row& row, std::uint32_t x) {
  const std::int64_t square = truncated_square(x);
  return row.a + row.b * std::int64_t{x} + row.d * (square << 2);
}

}  // namespace samebits::numerics::hopper
