// Tables: the nine tables of the function units, fitted anew from a unit's results and compared
// with the tables of numerics/hardware/function_units/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "function_unit_probe/device.hpp"
#include "function_unit_probe/fit.hpp"
#include "numerics/hardware/function_units/interpolation.hpp"

namespace samebits::function_units {

/// One table: where its results come from, and the rows of this library.
struct unit_table {
  std::string_view name;    ///< "rsqrt_even"
  std::string_view unit;    ///< "rsqrt": <unit>_table.hpp has the table
  std::string_view domain;  ///< of the comment above the rows
  instruction what;         ///< an instruction with .ftz, or tanh
  std::uint32_t first;      ///< bits of the first of 2^23 consecutive operands; 0 for sin, tanh
  std::uint32_t base;       ///< result bits that stand for S = 0
  int ulp_bits;             ///< units of the table in an ulp of results: 2^ulp_bits; or 0
  int fixed_bits;           ///< the table's unit is 2^-fixed_bits; 0: an ulp's 2^ulp_bits-th part
  std::uint32_t rows;       ///< 51, 64 or 128
  bool first_is_exact;      ///< the unit returns the first operand's result without the table
  numerics::hopper::unit_row (*row)(std::uint32_t);  ///< of this library
};

/// All tables.
std::span<const unit_table> tables();

/// The results of an instruction at the given operands, binary32 bits.
using recorder =
    std::function<std::vector<std::uint32_t>(instruction, std::span<const std::uint32_t>)>;

/// A table found anew.
struct fitted_table {
  const unit_table* table;
  std::vector<std::optional<row_fit>> rows;  ///< nothing: no coefficients of this design fit
  int holding;  ///< rows whose coefficients in this library give every result

  [[nodiscard]] bool holds() const { return holding == static_cast<int>(rows.size()); }
  /// Whether every row has coefficients.
  [[nodiscard]] bool complete() const;
};

/// Operands of each row that fit_table() records: one of every X.
constexpr std::size_t row_operands(const unit_table& t) {
  return t.rows == 128 ? 1 << 16 : 1 << 17;
}

/// Records results of every row (lg2: also at half the operands) and fits every row.
fitted_table fit_table(const unit_table& table, const recorder& record);

/// Text of a file <unit>_table.hpp with these tables, which must be complete and of one unit. Of
/// each interval, `a` is the smallest number.
///
/// @param origin  "H200, CUDA 13.0, 2026-11-22"
std::string header_text(std::span<const fitted_table> tables, std::string_view origin);

}  // namespace samebits::function_units
