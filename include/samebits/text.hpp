// Text: codes of any format as decimal and hexadecimal text, and text as codes, rounded once.
//
// All of it is exact integer arithmetic: neither the locale nor the floating-point environment has
// a say. Sources: contract §5; IEEE 754-2019 §5.12; Steele and White, How to print floating-point
// numbers accurately (PLDI 1990); C17 §7.22.1.3 (the grammar of hexadecimal text).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits {

// What the three writers share: bits of `code` beyond the format's own are ignored; "inf", "-inf",
// "nan", and "-nan" where the format's NaN has a sign; "-0" where it has one. Each text but that
// of a NaN with a payload or sign reads back as the same code under the default cast_rule.

/// The shortest decimal text that reads back as the same code under nearest_even; of several the
/// nearest to the exact value, and of two equally near the one whose last digit is even.
///
///   "0.0625"  "448"  "65504"  "1.5e-08"  "-1.7014118e+38"
///
/// Plain where the first digit's power of ten is -4 to 15, else d.ddde-NN with at least two digits
/// of exponent. A plain integer (so every integer below 10^16) is written out exactly: zeros in
/// place of its last digits would make it no shorter, and it is the nearest of its length
/// (65504, not 65500; 448, not 450).
///
/// "Reads back" takes max finite for a value like any other, with as much room above as below, also
/// in the formats where everything beyond reads as max finite (e2m3: "7.5", not "8").
std::string to_shortest(format_id format, std::uint64_t code);

/// The exact value in plain decimal digits, however many it takes: "0.001953125". The longest, of
/// fp64's subnormals, have 1074 digits after the point.
std::string to_exact_decimal(format_id format, std::uint64_t code);

/// The exact value as 0x1.hhhp±d, d in decimal; subnormals are normalised too, and trailing zeros
/// of the fraction left out: "0x1.8p-3" "-0x1p-149" "0x0p+0".
std::string to_hex_float(format_id format, std::uint64_t code);

/// What parse() read.
struct parse_result {
  bool ok;             ///< the whole text is a number; if not, the next three are 0
  std::uint64_t code;  ///< the rounded value, in stored position
  bool inexact;        ///< a finite value changed
  bool overflow;       ///< a finite value, rounded with unbounded exponent, exceeds max finite
  std::size_t error_offset;  ///< not ok: bytes before the first that cannot continue a number; the
                             ///< text's length where it ends too early; else 0

  friend constexpr bool operator==(const parse_result&, const parse_result&) = default;
};

/// Reads a number and rounds it once into a format by any rule (contract §3, §4).
///
///   decimal      12  -1.25e-3  .5  5.  1E400      any number of digits, any exponent
///   hexadecimal  0x1.8p3  0X.8P-1  0x10           the exponent in decimal and optional
///   special      inf  infinity  nan               in any case
///
/// each with an optional + or -, and nothing before or after it. Memory is constant and time
/// linear in the text's length, whatever the exponent says.
///
/// rule    treats "nan" and "inf" as a conversion treats a NaN and an infinity
/// random  stochastic rounding only: the K random bits
///
/// Throws invalid_argument if rule asks for stochastic rounding and random.count is not in 1..32
/// or random.value not below 2^count.
parse_result parse(format_id format, std::string_view text, const cast_rule& rule = {},
                   const random_bits& random = {});

}  // namespace samebits
