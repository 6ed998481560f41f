// Numbers: unpacks the operands of arithmetic operations and rounds their results once.
//
// Every operation has three steps. unpack() splits the codes. The operation computes the exact
// result (-1)^negative * sig * 2^exponent. round_result() rounds the result. If sig is long enough,
// its last bit may stand for all lower bits (round to odd).
#pragma once

#include <cstdint>

#include "numerics/bits/classify.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/round.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// The rounded result of an operation and the flags that it raises.
struct outcome {
  std::uint64_t code;  ///< in stored position, high bits 0
  flags raised;
};

enum class number_kind : std::uint8_t { finite, zero, infinite, nan };

/// An operand. A finite non-zero value is (-1)^negative * sig * 2^(exponent - 23) with 2^23 <= sig
/// < 2^24. For all other kinds sig and exponent are unspecified.
struct number {
  std::uint64_t sig;
  int exponent;
  bool negative;
  number_kind kind;
};

inline constexpr int number_bits = 24;  ///< bits of number::sig: binary32's precision

/// Number of bits of the significands that round_result() accepts.
inline constexpr int result_bits = 62;

/// Whether a format supports arithmetic: it has a NaN and a signed zero and is a subset of
/// binary32.
SAMEBITS_INLINE constexpr bool has_arithmetic(const format_spec& f) {
  return has_signed_nan(f) && f.mantissa_bits < number_bits && f.padding_bits == 0;
}

/// Whether the code is a signaling NaN: the format has Inf and the first mantissa bit of the NaN is
/// 0.
SAMEBITS_INLINE constexpr bool is_signaling(const format_spec& f, std::uint64_t code) {
  const std::uint64_t magnitude = code & magnitude_mask(f);
  const std::uint64_t quiet = (magnitude >> (f.mantissa_bits - 1)) & 1;
  return has_inf(f) && magnitude > inf_code(f) && quiet == 0;
}

/// Splits a code of a format that supports arithmetic.
SAMEBITS_INLINE constexpr number unpack(const format_spec& f, std::uint64_t code) {
  const std::uint64_t magnitude = code & magnitude_mask(f);
  const std::uint64_t min_normal = std::uint64_t{1} << f.mantissa_bits;
  const bool negative = (code & sign_mask(f)) != 0;
  const int up = number_bits - 1 - f.mantissa_bits;
  if (magnitude - min_normal <= max_finite(f) - min_normal) [[likely]] {
    return {((magnitude & (min_normal - 1)) | min_normal) << up,
            static_cast<int>(magnitude >> f.mantissa_bits) - f.bias, negative, number_kind::finite};
  }
  if (magnitude == 0) return {0, 0, negative, number_kind::zero};
  if (magnitude < min_normal) {
    const int shift = static_cast<int>(leading_zeros(magnitude)) - (64 - number_bits);
    return {magnitude << shift, min_exponent(f) + up - shift, negative, number_kind::finite};
  }
  const bool infinite = has_inf(f) && magnitude == inf_code(f);
  return {0, 0, negative, infinite ? number_kind::infinite : number_kind::nan};
}

SAMEBITS_INLINE constexpr flags flag_if(bool raised, flags f) { return raised ? f : flags::none; }

/// Combines the rounded magnitude with its sign and flags. `tiny` is the tininess that underflow
/// tests.
SAMEBITS_INLINE constexpr outcome put_together(const format_spec& to, const cast_rule& rule,
                                               bool negative, std::uint64_t magnitude, bool inexact,
                                               bool tiny) {
  const std::uint64_t sign = negative ? sign_mask(to) : 0;
  const auto r = finish<std::uint64_t>(to, rule, negative, sign, false, false, magnitude, inexact);
  return {r.code, flag_if(r.inexact, flags::inexact) | flag_if(r.overflow, flags::overflow) |
                      flag_if(inexact && tiny, flags::underflow)};
}

/// Rounds (-1)^negative * sig * 2^(top - 61) once; 2^61 <= sig < 2^62. The last bit of sig may
/// stand for all lower bits.
///
/// Tininess is detected after rounding with unbounded exponent. A value just below the smallest
/// normal number may therefore round up to it and not be tiny.
SAMEBITS_INLINE constexpr outcome round_normalized(const format_spec& to, const cast_rule& rule,
                                                   bool negative, std::uint64_t sig, int top,
                                                   std::uint64_t dither) {
  const int above = top - min_exponent(to);  // binades
  const auto normal_shift = static_cast<std::uint64_t>(result_bits - 1 - to.mantissa_bits);
  if (above >= 0) [[likely]] {
    const auto r = round_shift_within(rule.rounding, sig, normal_shift, negative, dither);
    const std::uint64_t binade = static_cast<std::uint64_t>(above) << to.mantissa_bits;
    return put_together(to, rule, negative, r.q + binade, r.inexact, false);
  }
  // All values further below round alike.
  const int below = above < -256 ? 256 : -above;
  const auto shift = normal_shift + static_cast<std::uint64_t>(below);
  const auto r = round_shift(rule.rounding, sig, shift, negative, dither);
  bool tiny = true;
  if (below == 1) {
    const auto unbounded = round_shift_within(rule.rounding, sig, normal_shift, negative, dither);
    tiny = (unbounded.q >> (to.mantissa_bits + 1)) == 0;
  }
  return put_together(to, rule, negative, r.q, r.inexact, tiny);
}

/// Rounds (-1)^negative * sig * 2^exponent once; 0 < sig < 2^62. If the last bit of sig stands for
/// lower bits, sig must have two bits more than the destination's precision. Stochastic rounding
/// needs 33 more bits.
SAMEBITS_INLINE constexpr outcome round_result(const format_spec& to, const cast_rule& rule,
                                               bool negative, std::uint64_t sig, int exponent,
                                               std::uint64_t dither) {
  const int up = static_cast<int>(leading_zeros(sig)) - (64 - result_bits);
  return round_normalized(to, rule, negative, sig << up, exponent - up + (result_bits - 1), dither);
}

/// Like round_result(), for 2^(bits - 2) <= sig < 2^bits; needs no search for the leading bit.
SAMEBITS_INLINE constexpr outcome round_result_of(int bits, const format_spec& to,
                                                  const cast_rule& rule, bool negative,
                                                  std::uint64_t sig, int exponent,
                                                  std::uint64_t dither) {
  sig <<= result_bits - bits;
  const int low = (sig >> (result_bits - 1)) == 0 ? 1 : 0;
  return round_normalized(to, rule, negative, sig << low, exponent + bits - 1 - low, dither);
}

/// A NaN result of an invalid operation or of a NaN operand. Such a NaN is always canonical: it has
/// no sign that preserve_sign could keep.
SAMEBITS_INLINE constexpr outcome nan_result(const format_spec& to, flags raised) {
  return {canonical_nan(to), raised};
}

/// An exact zero result; a format without -0 gives +0.
SAMEBITS_INLINE constexpr outcome zero_result(const format_spec& to, bool negative) {
  return {join(to, negative, 0), flags::none};
}

/// An exactly infinite result (contract §4): from Inf operands, or from a division by zero.
SAMEBITS_INLINE constexpr outcome infinite_result(const format_spec& to, const cast_rule& rule,
                                                  bool negative) {
  const std::uint64_t sign = negative ? sign_mask(to) : 0;
  const auto r =
      finish<std::uint64_t>(to, rule, negative, sign, false, true, magnitude_mask(to), false);
  if (rule.overflow == overflow::saturate) {
    return {r.code, flags::overflow | flags::inexact};
  }
  return {r.code, flag_if(!has_inf(to), flags::invalid)};
}

/// The result of an operation with a NaN operand.
SAMEBITS_INLINE constexpr outcome nan_operand(const format_spec& to, bool signaling) {
  return nan_result(to, flag_if(signaling, flags::invalid));
}

/// x >> count for count >= 0. The last bit of the result is also 1 if any dropped bit was 1.
SAMEBITS_INLINE constexpr std::uint64_t shift_to_odd(std::uint64_t x, int count) {
  if (count > 62) return x != 0 ? 1 : 0;
  const std::uint64_t kept = x >> count;
  return kept | ((kept << count) != x ? 1 : 0);
}

}  // namespace samebits::numerics
