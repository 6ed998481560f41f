// Add: sums and differences of two numbers, rounded once. fma also uses sum_of_terms().
#pragma once

#include <cstdint>

#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// (-1)^negative * sig * 2^exponent with 2^59 <= sig < 2^61.
struct term {
  std::uint64_t sig;
  int exponent;
  bool negative;
};

/// The term of a finite non-zero number.
SAMEBITS_INLINE constexpr term term_of(const number& x) {
  constexpr int up = 60 - number_bits;
  return {x.sig << up, x.exponent - (number_bits - 1) - up, x.negative};
}

/// x + y, rounded once. The term with the smaller exponent is shifted down; its last bit stands for
/// the dropped bits.
/// Terms have at most 48 significant bits. Bits are therefore dropped only if the exponents differ
/// by 13 or more. Then at most one leading bit cancels and 58 bits remain, more than any rounding
/// mode needs.
SAMEBITS_INLINE constexpr outcome sum_of_terms(const format_spec& to, const cast_rule& rule,
                                               const term& x, const term& y, std::uint64_t dither) {
  const int distance = x.exponent - y.exponent;
  const bool swapped = distance < 0;
  const term& upper = swapped ? y : x;
  const term& lower = swapped ? x : y;
  const std::uint64_t low = shift_to_odd(lower.sig, swapped ? -distance : distance);
  const std::uint64_t flip = x.negative != y.negative ? ~std::uint64_t{0} : 0;
  const std::uint64_t sum = upper.sig + (low ^ flip) - flip;  // upper +- low
  const bool past_zero = (sum >> 63) != 0;
  const std::uint64_t sig = past_zero ? 0 - sum : sum;
  if (sig == 0) return zero_result(to, rule.rounding == rounding::downward);
  return round_result(to, rule, upper.negative != past_zero, sig, upper.exponent, dither);
}

/// Converts an operand to a result: rounded once if finite.
SAMEBITS_INLINE constexpr outcome result_of(const format_spec& to, const cast_rule& rule,
                                            const number& x, std::uint64_t dither) {
  switch (x.kind) {
    case number_kind::zero: return zero_result(to, x.negative);
    case number_kind::infinite: return infinite_result(to, rule, x.negative);
    case number_kind::nan: return nan_result(to, flags::none);
    case number_kind::finite: break;
  }
  return round_result_of(number_bits, to, rule, x.negative, x.sig, x.exponent - (number_bits - 1),
                         dither);
}

/// x + y if x or y is zero, infinite or NaN.
SAMEBITS_INLINE constexpr outcome special_sum(const format_spec& to, const cast_rule& rule,
                                              const number& x, const number& y, bool signaling,
                                              std::uint64_t dither) {
  if (x.kind == number_kind::nan || y.kind == number_kind::nan) return nan_operand(to, signaling);
  if (x.kind == number_kind::infinite && y.kind == number_kind::infinite &&
      x.negative != y.negative) {
    return nan_result(to, flags::invalid);
  }
  if (x.kind == number_kind::infinite) return infinite_result(to, rule, x.negative);
  if (y.kind == number_kind::infinite) return infinite_result(to, rule, y.negative);
  if (x.kind == number_kind::zero && y.kind == number_kind::zero) {
    const bool equal = x.negative == y.negative;
    return zero_result(to, equal ? x.negative : rule.rounding == rounding::downward);
  }
  return result_of(to, rule, x.kind == number_kind::zero ? y : x, dither);
}

enum class term_sign : std::uint8_t { kept, flipped };

/// a + b, or a - b if of_b is term_sign::flipped.
SAMEBITS_INLINE constexpr outcome add(const format_spec& a_format, std::uint64_t a,
                                      const format_spec& b_format, std::uint64_t b,
                                      const format_spec& to, const cast_rule& rule,
                                      std::uint64_t dither, term_sign of_b = term_sign::kept) {
  const number x = unpack(a_format, a);
  number y = unpack(b_format, b);
  y.negative = y.negative != (of_b == term_sign::flipped);
  if (x.kind == number_kind::finite && y.kind == number_kind::finite) [[likely]] {
    return sum_of_terms(to, rule, term_of(x), term_of(y), dither);
  }
  const bool signaling = is_signaling(a_format, a) || is_signaling(b_format, b);
  return special_sum(to, rule, x, y, signaling, dither);
}

}  // namespace samebits::numerics
