// Codes and facts of formats as the subcommands print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// 0x and as many digits as the storage has: "0x7e", "0x7bff".
std::string code_text(samebits::format_id format, std::uint64_t code);

/// The code with the bits that are ignored on read cleared: padding, and those above the format.
std::uint64_t significant_bits(samebits::format_id format, std::uint64_t code);

/// The bits of a code by field; a field the format lacks is empty, padding is left out.
struct code_fields {
  std::string sign;
  std::string exponent;
  std::string mantissa;

  /// "0|1111|110"
  [[nodiscard]] std::string joined() const;
};
code_fields fields_of(samebits::format_id format, std::uint64_t code);

/// The value of a code where it is finite.
std::optional<double> finite_value(samebits::format_id format, std::uint64_t code);

/// The value in at most 24 characters, exact to 17 digits: the shortest text that reads back as the
/// same binary64. Unlike the format's own shortest text it tells neighbours and formats apart.
std::string value_text(samebits::format_id format, std::uint64_t code);

/// floor(log2(|x|)) of a finite x other than 0.
int exponent_of(double x);

/// "2^-14"
std::string power_text(int exponent);

/// Bits of one element where elements are packed, as tensor files pack those below a byte.
int packed_bits(samebits::format_id format);

}  // namespace fpinspect
