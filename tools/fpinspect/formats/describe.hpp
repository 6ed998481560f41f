// Codes and properties of formats as the subcommands print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// 0x and the code's digits at full storage width: "0x7e", "0x7bff".
std::string code_text(samebits::format_id format, std::uint64_t code);

/// The code with all bits cleared that reading ignores: padding, and bits above the format's width.
std::uint64_t significant_bits(samebits::format_id format, std::uint64_t code);

/// The bits of a code by field. A field that the format lacks is empty; padding is omitted.
struct code_fields {
  std::string sign;
  std::string exponent;
  std::string mantissa;

  /// "0|1111|110"
  [[nodiscard]] std::string separated() const;
};
code_fields fields_of(samebits::format_id format, std::uint64_t code);

/// The value of a code if it is finite.
std::optional<double> finite_value(samebits::format_id format, std::uint64_t code);

/// The value in at most 24 characters, exact to 17 digits: the shortest text that reads back as the
/// same binary64 number. Unlike the format's own shortest text, it distinguishes neighbours and
/// formats.
std::string value_text(samebits::format_id format, std::uint64_t code);

/// floor(log2(|x|)) of a finite x other than 0.
int exponent_of(double x);

/// "2^-14"
std::string power_text(int exponent);

/// Bits of one element in packed storage, which tensor files use for elements of less than a byte.
int packed_bits(samebits::format_id format);

}  // namespace fpinspect
