// Fit: finds the coefficients of one row of a function unit's table from the unit's results.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace samebits::function_units {

/// What a result says about the polynomial's value S at its operand: lower <= S < upper, in the
/// table's unit.
struct bounds {
  std::int64_t lower;
  std::int64_t upper;
};
/// Bounds of an operand whose result does not come from the table.
inline constexpr bounds no_bounds = {INT64_MIN, INT64_MAX};

/// Coefficients that give every result: S = a + b * X + d * 4 q (numerics/hardware/function_units/
/// interpolation.hpp) for every a from a_min to a_max.
struct row_fit {
  std::int64_t a_min;
  std::int64_t a_max;
  std::int32_t b;
  std::int32_t d;
};

/// Fits one row. A least-squares fit gives b and d, both rounded to whole numbers. With them every
/// result limits a to an interval.
///
/// @param results  one per operand of the row, in rising order: 2^16 or 2^17
/// @returns the coefficients with the widest interval of a; nothing if no coefficients within 2 of
///   the least-squares fit give all results
std::optional<row_fit> fit_row(std::span<const bounds> results);

}  // namespace samebits::function_units
