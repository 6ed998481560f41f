// Text: converts exact decimal numbers to codes, and codes to their shortest decimal digits.
//
// This file handles numbers; backends/reference/text.cpp reads and writes the characters.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/round.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/text/big_integer.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

// Reading: text -> exact_number -> leading_bits -> code.

/// (-1)^negative * digits * 10^power_of_10 * 2^power_of_2.
struct exact_number {
  bool negative = false;
  big_integer digits;
  std::int64_t power_of_10 = 0;
  std::int64_t power_of_2 = 0;
};

/// Maximum number of significant digits that are kept. If a dropped digit is not 0, one further
/// digit 1 stands for all of them.
///
/// Dropping digits is safe: every value at which a rounding decision changes has fewer digits, so
/// none lies between a text and its shortened form. Decision values are multiples of an ulp, of
/// half an ulp, or of 2^-32 ulp (stochastic). fp64 has the finest ones: near 2^-t they are
/// multiples of 2^-(t + 85), but never finer than 2^-1106. They have at most 0.7 t + 86 significant
/// digits: 801 in decimal. In hexadecimal they have 85 bits.
inline constexpr int kept_decimal_digits = 1000;
inline constexpr int kept_hex_digits = 31;

/// Bound on the power of ten of a decimal's first digit. Beyond this bound all values round alike:
/// fp64 ends at 1.8e308, and its smallest decision value is 2^-1106 = 1e-333.
///
/// With kept_decimal_digits this bound limits big_integer: 10^1001 has 3326 bits, 5^1400 has 3251.
inline constexpr int decimal_reach = 400;

/// (high * 2^61 + low) * 2^exponent with 2^60 <= high < 2^61 and low < 2^61. If lower bits were
/// dropped, the lowest bit is 1 (round to odd).
struct leading_bits {
  std::uint64_t high;
  std::uint64_t low;
  std::int64_t exponent;
};

/// Leading bits of (numerator / denominator) * 2^exponent by long division. Both must be non-zero.
constexpr leading_bits divide_leading(big_integer numerator, big_integer denominator,
                                      std::int64_t exponent) {
  const int up = denominator.bit_length() - numerator.bit_length();
  if (up > 0) {
    numerator.shift_left(up);
  } else {
    denominator.shift_left(-up);
  }
  exponent -= up;
  if (numerator < denominator) {
    numerator.shift_left(1);
    --exponent;
  }
  const auto next_61_bits = [&] {
    std::uint64_t bits = 0;
    for (int i = 0; i < 61; ++i) {
      bits <<= 1;
      if (numerator >= denominator) {
        numerator -= denominator;
        bits |= 1;
      }
      numerator.shift_left(1);
    }
    return bits;
  };
  const std::uint64_t high = next_61_bits();
  const std::uint64_t low = next_61_bits() | (numerator.is_zero() ? 0u : 1u);
  return {high, low, exponent - 121};
}

/// Leading bits of |x|. Requires non-zero digits and a power_of_10 within decimal_reach.
constexpr leading_bits leading_bits_of(const exact_number& x) {
  const int power = static_cast<int>(x.power_of_10);
  big_integer numerator = x.digits;
  big_integer denominator(1);
  if (power >= 0) {
    numerator.multiply_power_of_5(power);
  } else {
    denominator.multiply_power_of_5(-power);
  }
  return divide_leading(numerator, denominator, x.power_of_10 + x.power_of_2);
}

/// Rounds an exact number once into a format.
/// @param dither  the K random bits at the top of the word; used by stochastic rounding only
constexpr encoded<std::uint64_t> encode_exact(const format_spec& to, const cast_rule& rule,
                                              const exact_number& x, std::uint64_t dither) {
  if (x.digits.is_zero()) return encode_scaled(to, rule, x.negative, 0, 0, dither);
  const leading_bits v = leading_bits_of(x);

  // Number of bits of `high` below the target's spacing.
  const std::int64_t top = v.exponent + 121;
  const std::int64_t low_end = min_exponent(to);
  const std::int64_t spacing = (top < low_end ? low_end : top) - to.mantissa_bits;
  const std::int64_t below = spacing - (v.exponent + 61);
  if (rule.rounding != rounding::stochastic || below > 32) {
    return encode_scaled(to, rule, x.negative, v.high | (v.low != 0 ? 1 : 0), v.exponent + 61,
                         dither);
  }
  // fp64 with random bits: 53 + 32 bits decide, more than one word holds. round_shift() rounds the
  // fraction alone to 0 or 1; adding it gives a value that needs no further rounding.
  const std::uint64_t mask = (std::uint64_t{1} << below) - 1;
  const std::uint64_t fraction =
      ((v.high & mask) << (61 - below)) | (v.low >> below) | ((v.low & mask) != 0 ? 1 : 0);
  const auto up = round_shift<std::uint64_t>(rule.rounding, fraction, 61, x.negative, dither);
  auto result = encode_scaled(to, rule, x.negative, (v.high >> below) + up.q, spacing, dither);
  result.inexact = result.inexact || up.inexact;
  return result;
}

// Writing: code -> odd_value -> digits.

/// sig * 2^exponent with sig odd, or 0 * 2^0.
struct odd_value {
  std::uint64_t sig;
  int exponent;
};

/// The magnitude of finite binary64 bits as an odd significand and an exponent.
constexpr odd_value odd_value_of(std::uint64_t bits) {
  using source = binary<std::uint64_t>;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << source::mantissa_bits) - 1);
  const int field = static_cast<int>((bits & ~source::sign_bit) >> source::mantissa_bits);
  odd_value v{mantissa | (field != 0 ? std::uint64_t{1} << source::mantissa_bits : 0),
              (field != 0 ? field : 1) - source::bias - source::mantissa_bits};
  if (v.sig == 0) return {0, 0};
  for (; (v.sig & 1) == 0; v.sig >>= 1) ++v.exponent;
  return v;
}

/// Exponent of the highest set bit. Requires v.sig != 0.
constexpr int top_exponent(const odd_value& v) { return v.exponent + 63 - std::countl_zero(v.sig); }

/// digits * 10^exponent.
struct decimal {
  std::uint64_t digits;
  int exponent;
};

/// The interval of real numbers that round to a value under nearest_even, ignoring the format's
/// largest value.
///
/// The value is quarters * 2^exponent. The interval extends `below` and `above` such units from the
/// value. low_included and high_included tell whether each end belongs to it.
struct rounding_interval {
  std::uint64_t quarters;
  int exponent;
  unsigned below, above;
  bool low_included, high_included;
};

/// The interval of a non-zero value of the format. In e8m0 q is 1 and ties round up. (The interval
/// of e8m0's smallest value reaches down to 0. This changes no result: one digit already suffices
/// above.)
constexpr rounding_interval interval_of(const format_spec& f, const odd_value& v) {
  const bool scale = f.special == specials::scale;
  const int top = top_exponent(v);
  const int binade = scale || top > min_exponent(f) ? top : min_exponent(f);
  const int spacing = binade - f.mantissa_bits;  // exponent of one unit of q
  const std::uint64_t q = v.sig << (v.exponent - spacing);
  const bool even = (q & 1) == 0;
  // Below a power of two the spacing is half as large, except at the smallest normal number.
  const bool closer_below =
      q == std::uint64_t{1} << f.mantissa_bits && (scale || binade > min_exponent(f));
  return {4 * q, spacing - 2, closer_below ? 1u : 2u, 2, even || scale, even};
}

/// The decimal with the fewest digits inside the interval of a non-zero value. Among several it is
/// the one nearest to the value; in a tie, the one with an even last digit.
///
/// The digits of the value are produced exactly, one at a time (Steele and White). After each digit
/// there are two neighbouring decimals: the digits so far, and the digits so far plus one in the
/// last place. The first length at which one of them lies inside the interval is the shortest.
constexpr decimal shortest_decimal(const rounding_interval& in, int top) {
  // rest / one is the value in units of the next digit; below and above use the same unit.
  big_integer rest(in.quarters);
  big_integer one(1);
  big_integer below(in.below);
  big_integer above(in.above);
  const auto times_10 = [&](int power) {
    rest.multiply_power_of_10(power);
    below.multiply_power_of_10(power);
    above.multiply_power_of_10(power);
  };
  if (in.exponent >= 0) {
    for (big_integer* x : {&rest, &below, &above}) x->shift_left(in.exponent);
  } else {
    one.shift_left(-in.exponent);
  }
  // floor(log10(value)): top * log10(2) is right or one off; the checks below ensure 1 <= rest /
  // one < 10.
  int power = (top * 1233) >> 12;
  if (power >= 0) {
    one.multiply_power_of_10(power);
  } else {
    times_10(-power);
  }
  if (rest < one) {
    times_10(1);
    --power;
  }
  big_integer ten = one;
  ten.multiply_power_of_10(1);
  if (rest >= ten) {
    one = ten;
    ++power;
  }

  std::uint64_t digits = 0;
  for (;; times_10(1), --power) {
    digits *= 10;
    for (; rest >= one; rest -= one) ++digits;
    big_integer missing = one;  // distance from the value to digits + 1
    missing -= rest;
    const bool down = in.low_included ? rest <= below : rest < below;
    const bool up = in.high_included ? missing <= above : missing < above;
    if (!down && !up) continue;
    const auto nearer_up = rest <=> missing;
    const bool choose_up =
        down && up ? std::is_gt(nearer_up) || (std::is_eq(nearer_up) && (digits & 1) != 0) : up;
    return {digits + (choose_up ? 1 : 0), power};
  }
}

}  // namespace samebits::numerics
