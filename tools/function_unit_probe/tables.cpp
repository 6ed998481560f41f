// The tables of the function units: the bounds that results set, the fit, and the comparison.
#include "function_unit_probe/tables.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <stdexcept>

#include "numerics/bits/word.hpp"
#include "numerics/hardware/function_units/tables/ex2_table.hpp"
#include "numerics/hardware/function_units/tables/lg2_table.hpp"
#include "numerics/hardware/function_units/tables/rcp_table.hpp"
#include "numerics/hardware/function_units/tables/rsqrt_table.hpp"
#include "numerics/hardware/function_units/tables/sin_table.hpp"
#include "numerics/hardware/function_units/sin_unit.hpp"
#include "numerics/hardware/function_units/tables/sqrt_table.hpp"
#include "numerics/hardware/function_units/tables/tanh_table.hpp"
#include "numerics/hardware/function_units/tanh_unit.hpp"

namespace samebits::function_units {
namespace {

using namespace numerics::hopper;

constexpr std::uint32_t operands = 1u << 23;  // of a binade

constexpr unit_table all_tables[] = {
    {"ex2", "ex2", "2^x, x in [i / 64, (i + 1) / 64)", instruction::ex2_ftz, 0x3F800000, 0x40000000,
     17, 0, 64, false, ex2_row},
    {"lg2", "lg2", "log2(x), x in 1 + [i / 64, (i + 1) / 64)", instruction::lg2_ftz, 0x3F800000, 0,
     0, 41, 64, true, lg2_row},
    {"rcp", "rcp", "1 / x, x in 1 + [i / 128, (i + 1) / 128)", instruction::rcp_ftz, 0x3F800000,
     0x3F000000, 17, 0, 128, true, rcp_row},
    {"rsqrt_even", "rsqrt", "1 / sqrt(x), x in 1 + [i / 64, (i + 1) / 64): even exponents",
     instruction::rsqrt_ftz, 0x3F800000, 0x3F000000, 17, 0, 64, true, rsqrt_even_row},
    {"rsqrt_odd", "rsqrt", "1 / sqrt(x), x in 2 + [i / 32, (i + 1) / 32): odd exponents",
     instruction::rsqrt_ftz, 0x40000000, 0x3F000000, 17, 0, 64, false, rsqrt_odd_row},
    {"sqrt_even", "sqrt", "sqrt(x), x in 1 + [i / 64, (i + 1) / 64): even exponents",
     instruction::sqrt_ftz, 0x3F800000, 0x3F800000, 18, 0, 64, true, sqrt_even_row},
    {"sqrt_odd", "sqrt", "sqrt(x), x in 2 + [i / 32, (i + 1) / 32): odd exponents",
     instruction::sqrt_ftz, 0x40000000, 0x3F800000, 18, 0, 64, false, sqrt_odd_row},
    {"sin", "sin", "sin(pi/2 f), f in [i / 64, (i + 1) / 64)", instruction::sin_ftz, 0, 0, 0, 39,
     64, true, sin_row},
    {"tanh", "tanh", "tanh(x), 2^-8 <= x < 8, rows as in tanh_binade_of()", instruction::tanh, 0, 0,
     0, 40, 51, false, tanh_row},
};

std::vector<std::uint32_t> binade(std::uint32_t first) {
  std::vector<std::uint32_t> codes(operands);
  for (std::uint32_t i = 0; i < operands; ++i) codes[i] = first + i;
  return codes;
}

/// One operand of every fraction f of a quarter turn, a multiple of 2^-23. The instruction cuts the
/// operand's number of turns to it: in [1, pi/2) neighbours are 2/3 of such a multiple apart.
std::vector<std::uint32_t> quarter_turn() {
  std::vector<std::uint32_t> codes(operands);
  for (std::uint32_t f = 0; f < operands; ++f) {
    const double x = (f + 0.5) * 2 / 0xA2F983;  // the unit's 1/(2 pi) is 0xA2F983 * 2^-26
    codes[f] = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    if (turns_of(codes[f]) != f) throw std::logic_error("sin: an operand of another fraction");
  }
  return codes;
}

/// One operand of every X of tanh's rows.
std::vector<std::uint32_t> operands_of_tanh() {
  std::vector<std::uint32_t> codes;
  for (int exponent = -8; exponent <= 2; ++exponent) {
    const auto binade = static_cast<std::uint32_t>(exponent + 127) << 23;
    const std::uint32_t step = 1u << (6 - tanh_binade_of(exponent).row_bits);
    for (std::uint32_t f = 0; f < operands; f += step) codes.push_back(binade | f);
  }
  return codes;
}

std::vector<std::uint32_t> operands_of(const unit_table& t) {
  if (t.what == instruction::sin_ftz) return quarter_turn();
  if (t.what == instruction::tanh) return operands_of_tanh();
  return binade(t.first);
}

/// Bounds of S for results that are floor(S / 2^ulp_bits) above `base`.
std::vector<bounds> significand_bounds(const unit_table& t,
                                       std::span<const std::uint32_t> results) {
  std::vector<bounds> all(results.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::int64_t ulps = static_cast<std::int64_t>(results[i]) - t.base;
    all[i] = {ulps << t.ulp_bits, (ulps + 1) << t.ulp_bits};
  }
  return all;
}

/// Bounds of a magnitude in units of 2^-unit that was truncated to a multiple of 2^-kept and then to
/// 24 significant bits. The result is 0, or has an exponent from -kept to 0.
bounds magnitude_bounds(std::uint32_t result, int unit, int kept) {
  const int exponent = static_cast<int>((result >> 23) & 0xFF) - 127;
  const std::int64_t significand = (result & 0x007FFFFF) | 0x00800000;
  const int up = exponent - 23 + unit;
  if ((result << 1) == 0) return {0, std::int64_t{1} << (unit - kept)};
  const std::int64_t value = up >= 0 ? significand << up : significand >> -up;
  const std::int64_t step = std::int64_t{1} << std::max(up, unit - kept);
  return {value, value + step};
}
/// Of lg2's results.
bounds logarithm_bounds(std::uint32_t result) { return magnitude_bounds(result, 41, 36); }

/// Bounds of S = log2(x), 1 <= x < 2: from the results at x, which are S, and those at x / 2, which
/// are S - 1. Together they show S to 2^-36 at both ends of the binade.
std::vector<bounds> logarithm_bounds(std::span<const std::uint32_t> at_x,
                                     std::span<const std::uint32_t> at_half_x) {
  constexpr std::int64_t one = std::int64_t{1} << 41;
  std::vector<bounds> all(at_x.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bounds above = logarithm_bounds(at_x[i]);
    const bounds below = logarithm_bounds(at_half_x[i]);  // of 1 - S
    const std::int64_t lower = one - below.upper + 1, upper = one - below.lower + 1;
    // The unit returns 0 for 1 without the table.
    all[i] = i == 0 ? bounds{lower, upper}
                    : bounds{std::max(above.lower, lower), std::min(above.upper, upper)};
  }
  return all;
}

std::vector<bounds> bounds_of(const unit_table& t, const recorder& record) {
  const std::vector<std::uint32_t> results = record(t.what, operands_of(t));
  if (t.what == instruction::lg2_ftz) {
    return logarithm_bounds(results, record(t.what, binade(t.first - operands)));
  }
  std::vector<bounds> all;
  if (t.fixed_bits == 0) {
    all = significand_bounds(t, results);
  } else {
    for (const std::uint32_t result : results) {
      all.push_back(magnitude_bounds(result, t.fixed_bits, t.fixed_bits));
    }
  }
  if (t.first_is_exact) all[0] = no_bounds;
  return all;
}

bool is_within(const unit_row& row, const std::optional<row_fit>& fit) {
  return fit && row.b == fit->b && row.d == fit->d && row.a >= fit->a_min && row.a <= fit->a_max;
}

}  // namespace

std::span<const unit_table> tables() { return all_tables; }

bool fitted_table::complete() const {
  return std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.has_value(); });
}

fitted_table fit_table(const unit_table& table, const recorder& record) {
  const std::vector<bounds> all = bounds_of(table, record);
  const std::size_t count = row_operands(table);
  if (all.size() != table.rows * count) throw std::logic_error("operands of too many rows");
  fitted_table fitted{&table, {}, 0};
  for (std::uint32_t i = 0; i < table.rows; ++i) {
    fitted.rows.push_back(fit_row(std::span(all).subspan(i * count, count)));
    fitted.holding += is_within(table.row(i), fitted.rows.back());
  }
  return fitted;
}

std::string header_text(std::span<const fitted_table> tables, std::string_view origin) {
  const std::string unit(tables[0].table->unit);
  const int ulp_bits = tables[0].table->ulp_bits, fixed_bits = tables[0].table->fixed_bits;
  const bool below_one = tables[0].table->base == 0x3F000000;  // results in [1/2, 1)
  const std::string ulp = below_one ? "2^-24, the last place of results in [1/2, 1)"
                                    : "2^-23, the last place of results in [1, 2)";
  std::string text = "// " + unit + " table" + (tables.size() > 1 ? "s" : "") + ".\n//\n";
  text += ulp_bits == 0 ? "// Unit of the rows: 2^-" + std::to_string(fixed_bits) + ".\n"
                        : "// Unit of the rows: 2^-" + std::to_string(ulp_bits) +
                              " ulp; an ulp is " + ulp + ".\n";
  text += "//\n// Origin: " + std::string(origin) +
          ".\n// function_unit_tables fitted each row to the instruction's results at " +
          std::to_string(row_operands(*tables[0].table)) +
          " operands;\n// docs/function_units.md describes the fit. The constants `a` are not "
          "unique: each is one of those that give the "
          "measured results.\n#pragma once\n\n#include <cstdint>\n\n"
          "#include \"numerics/hardware/function_units/interpolation.hpp\"\n"
          "#include \"samebits/core/config.hpp\"\n\nnamespace samebits::numerics::hopper {\n";
  for (const fitted_table& fitted : tables) {
    const unit_table& t = *fitted.table;
    const std::string table_name(t.name);
    text += "\n/// Row i of " + std::string(t.domain) + ".\nSAMEBITS_TABLE unit_row " + table_name +
            "_rows[" + std::to_string(fitted.rows.size()) + "] = {\n";
    for (const auto& row : fitted.rows) {
      const row_fit& fit = *row;
      text += "    {" + std::to_string(fit.a_min) + ", " + std::to_string(fit.b) + ", " +
              std::to_string(fit.d) + "},\n";
    }
    text += "};\nSAMEBITS_INLINE constexpr unit_row " + table_name;
    text += "_row(std::uint32_t i) { return " + table_name;
    text += "_rows[i]; }\n";
  }
  return text + "\n}  // namespace samebits::numerics::hopper\n";
}

}  // namespace samebits::function_units
