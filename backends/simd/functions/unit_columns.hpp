// Unit columns: the tables of Hopper's function units (numerics/hardware/function_units/) in three
// arrays of 32-bit words, so that SIMD lanes gather them and compute in 32 bits.
//
// The significand of a result is floor((a + b x + 4 d q) / 2^17), in 64 bits. With
// a = high 2^17 + low and b = b_high 2^9 + b_low it equals
//
//   high + (b_high x + (low + b_low x + 4 d q >> 9) >> 8)
//
// with shifts that round downward: floors of nested divisions by whole numbers are equal to one
// floor. All terms are below 2^31 in magnitude (checked).
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/hardware/function_units/interpolation.hpp"
#include "numerics/hardware/function_units/squarer.hpp"

namespace samebits::simd {

/// Each row stands in memory twice: for lanes that load columns, and for lanes that load rows.
template <std::size_t Rows>
struct unit_columns {
  std::int32_t high[Rows];
  std::int32_t b[Rows];
  std::int32_t low_and_d[Rows];            ///< low + 2^17 d
  alignas(16) std::int32_t rows[Rows][4];  ///< high, b, low_and_d and 0
};

/// The row that each lane found.
template <class Lanes>
struct unit_coefficients {
  Lanes high;
  Lanes b;
  Lanes low_and_d;
};

/// Whether a row fits the columns and its terms fit 32 bits: x < 2^17, q < 2^15.
consteval bool fits(const numerics::hopper::unit_row& row) {
  const std::int64_t limit = std::int64_t{1} << 31;
  const std::int64_t low = row.a & 0x1FFFF;
  const std::int64_t sum = low + std::int64_t{511} * 0x1FFFF + std::int64_t{row.d} * 4 * 0x7FFF;
  const std::int64_t high = (std::int64_t{row.b} >> 9) * 0x1FFFF;
  const std::int64_t size = high < 0 ? -high : high;
  return row.d >= 0 && row.d < (1 << 14) && sum < limit && size + (sum >> 9) < limit;
}

template <std::size_t Rows, class RowOf>
consteval unit_columns<Rows> columns_of(const RowOf& row_of) {
  unit_columns<Rows> columns{};
  for (std::size_t i = 0; i < Rows; ++i) {
    const numerics::hopper::unit_row row = row_of(static_cast<std::uint32_t>(i));
    if (!fits(row)) throw "a row does not fit";
    columns.high[i] = static_cast<std::int32_t>(row.a >> 17);
    columns.b[i] = row.b;
    columns.low_and_d[i] = static_cast<std::int32_t>((row.a & 0x1FFFF) | (row.d << 17));
    const std::int32_t all[] = {columns.high[i], columns.b[i], columns.low_and_d[i], 0};
    for (int c = 0; c < 4; ++c) columns.rows[i][c] = all[c];
  }
  return columns;
}

}  // namespace samebits::simd
