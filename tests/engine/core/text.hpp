// Texts of codes and rules.
#pragma once

#include <cstdint>
#include <string>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::support {

/// "0x43E8", with all digits of the storage word.
std::string hex(std::uint64_t code, int storage_bits);

/// A code with its fields and its exact value (fp64 or narrower, printed shortest as a double):
///
///   0x43E80000 = 0|10000111|11010000000000000000000 = 0x1.dp+8 = 464
///
/// Fields are sign|exponent|mantissa, then unused low bits, as far as the format has them.
std::string code_text(format_id format, std::uint64_t code);
/// A code and its value in a few characters: "0x43E80000 = 464".
std::string short_code_text(format_id format, std::uint64_t code);

/// "upward ieee canonical".
inline std::string text_of(const cast_rule& rule) {
  return std::string(name(rule.rounding)) + ' ' + std::string(name(rule.overflow)) + ' ' +
         std::string(name(rule.nan));
}
/// "seed 1 stream 2 offset 3 pitch default K 32".
std::string text_of(const random_stream& random);

}  // namespace samebits::support
