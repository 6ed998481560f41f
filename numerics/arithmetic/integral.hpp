// Integral: rounding to integers in a float format, conversion to and from integer types, and
// exponents.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// Rounds a finite number to an integer. Requires x.exponent < 23, so the result is at most 2^23.
SAMEBITS_INLINE constexpr rounded<std::uint64_t> integer_of(const number& x, rounding mode,
                                                            std::uint64_t dither) {
  const auto shift = static_cast<std::uint64_t>(number_bits - 1 - x.exponent);
  return round_shift(mode, x.sig, shift, x.negative, dither);
}

/// roundToIntegralExact(a): rounds a to an integer. If the destination format lacks this integer,
/// it is rounded again by the same rule and the same random bits.
SAMEBITS_INLINE constexpr outcome round_to_integral(const format_spec& a_format, std::uint64_t a,
                                                    const format_spec& to, const cast_rule& rule,
                                                    std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return nan_operand(to, is_signaling(a_format, a));
  if (x.kind != number_kind::finite || x.exponent >= number_bits - 1) {
    return result_of(to, rule, x, dither);
  }
  const auto r = integer_of(x, rule.rounding, dither);
  const flags changed = flag_if(r.inexact, flags::inexact);
  if (r.q == 0) return {zero_result(to, x.negative).code, changed};
  if (a_format.mantissa_bits == to.mantissa_bits && a_format.bias == to.bias) {
    // Source and destination share precision and exponent range: the destination contains the
    // integer. A carry moves it to the next binade.
    const int exponent = x.exponent < 0 ? 0 : x.exponent;
    const std::uint64_t sig = r.q << (number_bits - 1 - exponent);
    const std::uint64_t magnitude =
        (static_cast<std::uint64_t>(exponent + to.bias - 1) << to.mantissa_bits) +
        (sig >> (number_bits - 1 - to.mantissa_bits));
    return {join(to, x.negative, magnitude), changed};
  }
  const outcome result = round_result(to, rule, x.negative, r.q, 0, dither);
  return {result.code, result.raised | changed};
}

/// An integer type of 8 to 64 bits.
struct integer_spec {
  int bits;
  bool is_signed;
};

/// An integer in two's complement; bits above the type's width are zero.
struct integer_outcome {
  std::uint64_t bits;
  flags raised;
};

SAMEBITS_INLINE constexpr std::uint64_t integer_mask(int bits) {
  return ~std::uint64_t{0} >> (64 - bits);
}

/// Rounds a to an integer type. An out-of-range value gives the nearest bound and a NaN gives 0;
/// both raise invalid and not inexact.
SAMEBITS_INLINE constexpr integer_outcome to_integer(const format_spec& a_format, std::uint64_t a,
                                                     const integer_spec& to, rounding mode,
                                                     std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return {0, flags::invalid};
  if (x.kind == number_kind::zero) return {0, flags::none};
  const std::uint64_t mask = integer_mask(to.bits);
  const std::uint64_t largest = to.is_signed ? mask >> 1 : mask;
  const std::uint64_t minimum = to.is_signed ? largest + 1 : 0;  // magnitude of the lower bound
  const std::uint64_t bound = x.negative ? minimum : largest;
  std::uint64_t magnitude = 0;
  bool inexact = false;
  bool beyond = x.kind == number_kind::infinite || x.exponent > 63;
  if (!beyond) {
    if (x.exponent >= number_bits - 1) {
      magnitude = x.sig << (x.exponent - (number_bits - 1));
    } else {
      const auto r = integer_of(x, mode, dither);
      magnitude = r.q;
      inexact = r.inexact;
    }
    beyond = magnitude > bound;
  }
  if (beyond) return {bound, flags::invalid};  // -2^(bits - 1) has the same bits as its magnitude
  return {(x.negative ? 0 - magnitude : magnitude) & mask, flag_if(inexact, flags::inexact)};
}

/// Rounds an integer once into a format; `bits` as in integer_outcome. 0 gives +0.
SAMEBITS_INLINE constexpr outcome from_integer(const integer_spec& from, std::uint64_t bits,
                                               const format_spec& to, const cast_rule& rule,
                                               std::uint64_t dither) {
  const std::uint64_t mask = integer_mask(from.bits);
  const bool negative = from.is_signed && ((bits >> (from.bits - 1)) & 1) != 0;
  const std::uint64_t magnitude = (negative ? 0 - bits : bits) & mask;
  if (magnitude == 0) return zero_result(to, false);
  const int down = (magnitude >> result_bits) != 0 ? 64 - result_bits : 0;
  return round_result(to, rule, negative, shift_to_odd(magnitude, down), down, dither);
}

/// Converts a with one rounding. A NaN keeps its sign if the NaN policy says so, as in every
/// conversion.
SAMEBITS_INLINE constexpr outcome convert_number(const format_spec& a_format, std::uint64_t a,
                                                 const format_spec& to, const cast_rule& rule,
                                                 std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind != number_kind::nan) return result_of(to, rule, x, dither);
  const std::uint64_t sign = x.negative ? sign_mask(to) : 0;
  const auto nan =
      finish<std::uint64_t>(to, rule, x.negative, sign, true, false, magnitude_mask(to), false);
  return {nan.code, flag_if(is_signaling(a_format, a), flags::invalid)};
}

/// a * 2^n, rounded once.
SAMEBITS_INLINE constexpr outcome scale_exponent(const format_spec& a_format, std::uint64_t a,
                                                 std::int32_t n, const format_spec& to,
                                                 const cast_rule& rule, std::uint64_t dither) {
  number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return nan_operand(to, is_signaling(a_format, a));
  constexpr int far = 1000;  // at this distance every format has overflowed or vanished
  x.exponent += n < -far ? -far : n > far ? far : n;
  return result_of(to, rule, x, dither);
}

/// floor(log2(|a|)). 0 and NaN give INT32_MIN, Inf gives INT32_MAX; all three raise invalid.
SAMEBITS_INLINE constexpr integer_outcome exponent_of(const format_spec& a_format,
                                                      std::uint64_t a) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::infinite) return {0x7FFFFFFFu, flags::invalid};
  if (x.kind != number_kind::finite) return {0x80000000u, flags::invalid};
  return {static_cast<std::uint32_t>(x.exponent), flags::none};
}

}  // namespace samebits::numerics
