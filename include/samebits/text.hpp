// Text: writes codes of any format as decimal and hexadecimal text, and parses text into codes,
// rounded once.
//
// All functions use exact integer arithmetic: locale and floating-point environment have no effect.
// Sources: contract §5; IEEE 754-2019 §5.12; Steele and White, How to print floating-point numbers
// accurately (PLDI 1990); C17 §7.22.1.3 (the grammar of hexadecimal text).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits {

// Rules of the three writers:
// - Bits of `code` beyond the format's own are ignored.
// - Infinities are "inf" and "-inf". A NaN is "nan", or "-nan" if its sign bit
//   is set. Formats whose only NaN has no sign (fnuz, e8m0) give "nan".
// - A negative zero is "-0" if the format has one.
// - Each text reads back as the same code under the default cast_rule, but for a NaN with a payload
//   or sign.

/// Returns the shortest decimal text that reads back as the same code under nearest_even. Of
/// several, the text nearest to the exact value; of two equally near, the one whose last digit is
/// even.
///
///   "0.0625"  "448"  "65504"  "1.5e-08"  "-1.7014118e+38"
///
/// The text is plain if the power of ten of its first digit is -4 to 15. Otherwise it is d.ddde-NN
/// with at least two digits of exponent. A plain integer (so every integer below 10^16) is written
/// exactly: zeros in place of its last digits would not make it shorter, and the exact text is the
/// nearest of its length (65504, not 65500; 448, not 450).
///
/// "Reads back" treats max finite like any other value, with as much room above as below. This also
/// holds in formats where every larger number reads as max finite (e2m3: "7.5", not "8").
std::string to_shortest(format_id format, std::uint64_t code);

/// Returns the exact value in plain decimal digits: "0.001953125". The longest texts, of fp64
/// subnormals, have 1074 digits after the point.
std::string to_exact_decimal(format_id format, std::uint64_t code);

/// Returns the exact value as 0x1.hhhp±d, with d in decimal. Subnormals are normalised too, and
/// trailing zeros of the fraction are dropped: "0x1.8p-3" "-0x1p-149" "0x0p+0".
std::string to_hex_float(format_id format, std::uint64_t code);

/// Result of parse().
struct parse_result {
  bool ok;             ///< the whole text is a number; if not, the next three are 0
  std::uint64_t code;  ///< the rounded value, in stored position
  bool inexact;        ///< a finite value changed
  bool overflow;       ///< a finite value, rounded with unbounded exponent, exceeds max finite
  std::size_t error_offset;  ///< if not ok: offset of the first byte that cannot continue a number,
                             ///< or the text's length if the text ends too early; else 0

  friend constexpr bool operator==(const parse_result&, const parse_result&) = default;
};

/// Parses a number and rounds it once into a format by any rule (contract §3, §4).
///
/// Accepted texts, each with an optional + or -, and nothing before or after:
///   decimal      12  -1.25e-3  .5  5.  1E400      any number of digits, any exponent
///   hexadecimal  0x1.8p3  0X.8P-1  0x10           the exponent in decimal and optional
///   special      inf  infinity  nan               in any case
///
/// Memory is constant, and time is linear in the text's length for any exponent.
///
/// @param format  the format of the result
/// @param text  the number
/// @param rule  rounding, overflow and NaN rules; "nan" and "inf" are treated as a NaN and an
///   infinity in a conversion
/// @param random  read only by stochastic rounding: the K random bits
/// @throws invalid_argument if the rule is stochastic, and random.count is not in 1..32 or
///   random.value is not below 2^count.
parse_result parse(format_id format, std::string_view text, const cast_rule& rule = {},
                   const random_bits& random = {});

}  // namespace samebits
