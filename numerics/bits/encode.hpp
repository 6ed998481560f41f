// Encode: rounds binary32 or binary64 bits, or an exact scaled integer, into a code of any format.
// Only this file applies the overflow, NaN and zero policies.
#pragma once

#include <cstdint>

#include "numerics/bits/layout.hpp"
#include "numerics/bits/round.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// The result of rounding a value to a format.
template <class Word>
struct encoded {
  Word code;               ///< in stored position; high and padding bits are 0
  mask_of<Word> inexact;   ///< the rounding changed a finite value
  mask_of<Word> overflow;  ///< a finite value, rounded with unbounded exponent, exceeds max finite
};

/// Whether `mode` rounds some finite values above max finite to max finite under overflow::ieee.
SAMEBITS_INLINE constexpr bool can_stop_at_max(rounding mode) {
  return mode == rounding::toward_zero || mode == rounding::to_odd || mode == rounding::upward ||
         mode == rounding::downward;
}

/// Whether `mode` rounds arbitrarily small non-zero values away from zero.
SAMEBITS_INLINE constexpr bool can_leave_zero(rounding mode) {
  return mode == rounding::upward || mode == rounding::downward || mode == rounding::to_odd;
}

/// Whether a finite value of this sign above max finite becomes max finite under overflow::ieee.
template <class Mask>
SAMEBITS_INLINE constexpr Mask stops_at_max(rounding mode, Mask negative) {
  const Mask no = negative & !negative;
  switch (mode) {
    case rounding::toward_zero:
    case rounding::to_odd: return !no;
    case rounding::upward: return negative;
    case rounding::downward: return !negative;
    case rounding::nearest_even:
    case rounding::nearest_away:
    case rounding::stochastic: break;
  }
  return no;
}

/// Applies overflow, NaN and sign rules (steps 4 to 6 of encode()) and returns the final code.
///
/// @param negative  sign of the value
/// @param sign  sign of the value as a Word: 0 or sign_mask(to)
/// @param magnitude  a finite value: its rounded code with unbounded exponent. Inf and NaN: any
///   code above max finite.
template <class Word>
SAMEBITS_INLINE constexpr encoded<Word> finish(const format_spec& to, const cast_rule& rule,
                                               mask_of<Word> negative, Word sign,
                                               mask_of<Word> is_nan, mask_of<Word> is_inf,
                                               Word magnitude, mask_of<Word> inexact) {
  using element = element_of<Word>;
  using mask = mask_of<Word>;
  const Word zero = element{0};
  const Word max = static_cast<element>(max_finite(to));
  const Word nan = static_cast<element>(has_nan(to) ? nan_code(to) : max_finite(to));
  const Word beyond = static_cast<element>(infinite_code(to));
  const mask finite = !(is_nan | is_inf);
  const mask over = finite & (magnitude > max);
  mask changed = finite & (inexact | over);
  // e8m0 has no sign: dropping a minus sign changes the value.
  if (to.special == specials::scale) changed = changed | (finite & negative);

  // 4. Overflow. A magnitude above max becomes max or `beyond`, the code right after max
  // (layout.hpp). One minimum therefore clamps it. Inf and NaN take the same minimum and are
  // corrected below where the result differs.
  const bool stops = rule.overflow == overflow::ieee && can_stop_at_max(rule.rounding);
  Word ceiling = rule.overflow == overflow::ieee ? beyond : max;
  if (stops) {
    const mask none = negative & !negative;
    ceiling = select(stops_at_max(rule.rounding, to.special == specials::scale ? none : negative),
                     max, beyond);
  }
  magnitude = min_word(magnitude, ceiling);
  if (stops || rule.overflow == overflow::saturate_finite) {
    magnitude = select(is_inf, beyond, magnitude);
  }
  // 5. NaN. In a format without Inf an infinite result is a NaN too. 6. Sign.
  const bool infinite_is_nan = has_nan(to) && !has_inf(to) && rule.overflow != overflow::saturate;
  const bool clamped_to_nan = infinite_is_nan && rule.overflow == overflow::ieee && !stops;
  if (infinite_is_nan && !clamped_to_nan) magnitude = select(is_nan, nan, magnitude);
  const mask nan_result = infinite_is_nan ? magnitude == nan : is_nan;
  Word code = magnitude | sign;
  if (has_signed_nan(to) && rule.nan == nan_policy::preserve_sign) {
    code = select(nan_result, nan, magnitude) | sign;
  } else {
    code = select(nan_result, nan, code);
  }
  if (!has_negative_zero(to) && has_sign(to)) code = select(magnitude == zero, zero, code);  // fnuz
  return {code << static_cast<element>(to.padding_bits), changed, over};
}

/// Rounds onto the powers of two of e8m0 (contract §4). The value is sig * 2^(biased - bias -
/// digits + 1), and the top bit of sig is bit digits - 1. If this top bit is 0, the value is below
/// 2^-127. The rounded integer q is 1 at every e8m0 value: a nearest tie goes up and to_odd keeps
/// q.
template <class Word>
SAMEBITS_INLINE constexpr rounded<Word> round_to_power(rounding mode, Word sig, Word biased,
                                                       int bias, int digits, Word dither) {
  using element = element_of<Word>;
  const Word zero = element{0};
  const Word floor = static_cast<element>(bias - spec_of(format_id::e8m0).bias);
  const Word top = element{1} << static_cast<element>(digits - 1);
  const mask_of<Word> negative = top == zero;  // e8m0 has no sign: upward is away from zero
  const rounded<Word> r =
      round_shift(mode, sig, Word(static_cast<element>(digits - 1)), negative, dither);
  const mask_of<Word> tiny = ((sig & top) == zero) | (biased < floor);
  const mask_of<Word> inexact = tiny | r.inexact;
  const Word code = biased - floor + (r.q - Word(element{1}));
  return {select(tiny, zero, code), inexact};
}

/// Rounds binary32 or binary64 bits (as wide as Word) once into a format.
///
///   1. Split sign and magnitude; detect NaN and Inf before any other step changes the bits.
///   2. Build the significand sig and the biased exponent field. If source and target differ in
///      exponent range, the target's range begins at least 2^110 above the source's subnormals
///      (checked in layout.hpp).
///   3. Find the target's spacing. Its binade is k = max(field, kmin), where kmin is the binade of
///      the target's smallest normal number, in the source's bias. `shift` is the number of bits of
///      sig below one unit of the target's spacing in binade k.
///      The rounded integer plus (k - kmin) binades IS the code with unbounded exponent: the
///      implicit bit supplies the missing 1 of the exponent field, and a rounding carry flows
///      into the exponent field.
///   4.-6. in finish().
///
/// @param dither  the K random bits at the top of the Word; used by stochastic rounding only
template <class Word>
SAMEBITS_INLINE constexpr encoded<Word> encode(const format_spec& to, const cast_rule& rule,
                                               Word bits, Word dither) {
  using element = element_of<Word>;
  using source = binary<element>;
  constexpr int m_bits = source::mantissa_bits;
  const Word zero = element{0};
  const Word one = element{1};
  const Word implicit = element{1} << m_bits;

  const mask_of<Word> negative = (bits & Word(source::sign_bit)) != zero;
  const Word magnitude = bits & Word(static_cast<element>(~source::sign_bit));
  const mask_of<Word> is_nan = magnitude > Word(source::inf);
  const mask_of<Word> is_inf = magnitude == Word(source::inf);

  constexpr int top = binary<element>::width - 1;
  const int sign_position = has_sign(to) ? magnitude_bits(to) : 0;
  const Word sign = (bits >> static_cast<element>(top - sign_position)) &
                    Word(static_cast<element>(sign_mask(to)));

  const Word field = magnitude >> static_cast<element>(m_bits);
  const Word mantissa = magnitude & (implicit - one);

  if (to.special == specials::scale) {
    const Word sig = select(field == zero, mantissa << one, mantissa | implicit);
    const rounded<Word> r =
        round_to_power(rule.rounding, sig, field, source::bias, m_bits + 1, dither);
    return finish(to, rule, negative, sign, is_nan, is_inf, r.q, r.inexact);
  }
  if (to.bias == source::bias) {
    // Same exponent range: the magnitude is already the target's code with extra mantissa bits.
    const Word shift = static_cast<element>(m_bits) - static_cast<element>(to.mantissa_bits);
    const rounded<Word> r = round_shift_within(rule.rounding, magnitude, shift, negative, dither);
    return finish(to, rule, negative, sign, is_nan, is_inf, r.q, r.inexact);
  }
  // Subnormal sources lie far below half of the target's smallest value, so their exact size does
  // not matter. They get the implicit bit like normal numbers. Only an exact zero must stay zero,
  // for modes that round away from zero.
  Word sig = mantissa | implicit;
  if (can_leave_zero(rule.rounding)) sig = select(magnitude == zero, zero, sig);
  const int min_normal = min_exponent(to) + source::bias;
  const Word kmin = static_cast<element>(min_normal);
  const Word k = max_word(field, kmin);
  const Word shift = k - field + static_cast<element>(m_bits - to.mantissa_bits);
  const rounded<Word> r = round_shift(rule.rounding, sig, shift, negative, dither);
  const Word code = r.q + ((k - kmin) << static_cast<element>(to.mantissa_bits));
  return finish(to, rule, negative, sign, is_nan, is_inf, code, r.inexact & (magnitude != zero));
}

/// Rounds the value (-1)^negative * sig * 2^exponent once into a format (scalars only).
///
/// Requires sig < 2^62. If sig is inexact, its last bit must be 1 (round to odd) and sig >= 2^60.
/// This precision suffices for every mode, including 32 random bits on binary32.
SAMEBITS_INLINE constexpr encoded<std::uint64_t> encode_scaled(const format_spec& to,
                                                               const cast_rule& rule, bool negative,
                                                               std::uint64_t sig,
                                                               std::int64_t exponent,
                                                               std::uint64_t dither) {
  constexpr int digits = 62;
  const std::uint64_t sign = negative ? sign_mask(to) : 0;
  if (sig == 0)
    return finish<std::uint64_t>(to, rule, negative, sign, false, false, 0,
                                 to.special == specials::scale);
  const int up = static_cast<int>(leading_zeros(sig)) - (64 - digits);
  sig <<= up;
  // Exponent of the leading bit, clamped to a range outside which every format overflows or rounds
  // alike.
  std::int64_t top = exponent - up + (digits - 1);
  top = top < -4096 ? -4096 : top > 1100 ? 1100 : top;

  if (to.special == specials::scale) {
    constexpr int bias = 8192;
    const auto r = round_to_power(rule.rounding, sig, static_cast<std::uint64_t>(top + bias), bias,
                                  digits, dither);
    return finish<std::uint64_t>(to, rule, negative, sign, false, false, r.q, r.inexact);
  }
  const std::int64_t low = min_exponent(to);
  const std::int64_t binade = top < low ? low : top;
  const auto shift = static_cast<std::uint64_t>(binade - top + (digits - 1 - to.mantissa_bits));
  const auto r = round_shift(rule.rounding, sig, shift, negative, dither);
  const auto code = r.q + (static_cast<std::uint64_t>(binade - low) << to.mantissa_bits);
  return finish<std::uint64_t>(to, rule, negative, sign, false, false, code, r.inexact);
}

}  // namespace samebits::numerics
