// Codes and properties of formats as the subcommands print them, and what rounding to them does.
#pragma once

#include <cmath>
#include <cstring>

#include "fpinspect/output/json.hpp"
#include "samebits/arithmetic.hpp"
#include "samebits/convert.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/packing.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {

/// The code in `bytes` bytes of memory, little-endian as everywhere in this library.
inline std::uint64_t load_code(const std::byte* from, std::size_t bytes) {
  std::uint64_t code = 0;
  std::memcpy(&code, from, bytes);
  return code;
}
inline void store_code(std::byte* to, std::size_t bytes, std::uint64_t code) {
  std::memcpy(to, &code, bytes);
}

/// 0x and the code's digits at full storage width: "0x7e", "0x7bff".
std::string code_text(format_id format, std::uint64_t code);

/// The code with all bits cleared that reading ignores: padding, and bits above the format's width.
inline std::uint64_t significant_bits(format_id format, std::uint64_t code) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - code_bits(format));
  return code & (all << spec_of(format).padding_bits);
}

/// "nearest_even, ieee, canonical"
inline std::string rule_text(const convert_options& rule) {
  return cat(rule.rounding, ", ", rule.overflow, ", ", rule.nan);
}
/// The members round, overflow and nan; those of the random bits if rounding is stochastic.
json_object rule_json(const convert_options& rule);

/// The bits of a code by field. A field that the format lacks is empty; padding is omitted.
struct code_fields {
  std::string sign;
  std::string exponent;
  std::string mantissa;

  /// "0|1111|110"
  [[nodiscard]] std::string separated() const;
};
code_fields fields_of(format_id format, std::uint64_t code);

/// The value of a code if it is finite.
inline std::optional<double> finite_value(format_id format, std::uint64_t code) {
  return is_finite(format, code) ? std::optional(decode_double(format, code)) : std::nullopt;
}

/// log2 of the spacing of values at this value; below min normal, of the subnormals. Nothing for
/// NaN and infinities.
std::optional<int> ulp_log2(format_id format, std::uint64_t code);

/// The members code, value and number.
json_object code_json(format_id format, std::uint64_t code);

/// The value in at most 24 characters, exact to 17 digits: the shortest text that reads back as the
/// same binary64 number. Unlike the format's own shortest text, it distinguishes neighbours and
/// formats.
std::string value_text(format_id format, std::uint64_t code);

/// A line: the label, format, code and value of a number, and a note.
std::string number_line(const std::string& label, format_id format, std::uint64_t code,
                        std::string_view note);

/// floor(log2(|x|)) of a finite x other than 0.
inline int exponent_of(double x) { return std::ilogb(x); }

/// "2^-14"
inline std::string power_text(int exponent) { return cat("2^", exponent); }

struct named_flag {
  flags flag;
  std::string_view name;
};
inline constexpr std::array<named_flag, 5> named_flags{{{flags::invalid, "invalid"},
                                                        {flags::divide_by_zero, "divide_by_zero"},
                                                        {flags::overflow, "overflow"},
                                                        {flags::underflow, "underflow"},
                                                        {flags::inexact, "inexact"}}};

/// Numbers of results that raised each flag, in the order of the table.
using flag_counts = std::array<std::uint64_t, named_flags.size()>;
void count_flags(flag_counts& counts, flags raised);

/// Counts under the names of the rows of a table.
template <class Table>
json_value counts_json(const Table& table, std::span<const std::uint64_t> counts) {
  json_object object;
  for (std::size_t i = 0; i < counts.size(); ++i) object.add(table[i].name, counts[i]);
  return object.on_one_line();
}

/// The names of the raised flags, in the order of the table.
inline std::vector<std::string_view> names_of(flags raised) {
  std::vector<std::string_view> names;
  for (const named_flag& f : named_flags) {
    if (has(raised, f.flag)) names.push_back(f.name);
  }
  return names;
}

// --- Rounding a number to formats: the outcome in one word, and all codes that it becomes --------

enum class outcome : std::uint8_t { exact, rounded, subnormal, underflow, overflow, saturated };

std::string_view name(outcome what);

/// The class of a number before rounding, for text that samebits::parse() accepts. Only the classes
/// zero, infinite and nan say something about the number; normal and subnormal are those of fp64.
number_class class_of_text(std::string_view text);

/// The first of these outcomes that applies:
///   overflow   beyond max, became Inf or NaN
///   saturated  beyond max, became max
///   underflow  non-zero, became zero
///   subnormal  non-zero, became subnormal, exactly or not
///   rounded    changed
///   exact      unchanged
/// Inf or NaN counts as beyond max if the format lacks it.
outcome outcome_of(number_class source, format_id format, const converted& result);

/// A rounding mode, and the share of its random words that give a code: 1 unless the mode is
/// stochastic.
struct mode_share {
  rounding mode;
  double share;
};

/// A code of a format, and the rounding modes that round the number to this code.
struct rounded_code {
  format_id format;
  std::uint64_t code;
  bool inexact;
  bool overflow;
  std::vector<mode_share> modes;
};

/// Returns the different codes that a number becomes, format by format. The shares of stochastic
/// rounding are exact: bisection finds the smallest of the 2^32 random words that rounds away from
/// zero.
/// @param text  a number that samebits::parse() accepts
std::vector<rounded_code> round_by_all(std::string_view text, std::span<const format_id> formats,
                                       std::span<const rounding> modes);

}  // namespace fpinspect
