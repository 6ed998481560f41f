// Integral: rounding to integers of the same or another type, and integers as numbers.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// A finite number rounded to an integer below 2^24, or an integer already. Requires an exponent
/// below 23.
SAMEBITS_INLINE constexpr rounded<std::uint64_t> integer_of(const number& x, rounding mode,
                                                            std::uint64_t dither) {
  const auto shift = static_cast<std::uint64_t>(number_bits - 1 - x.exponent);
  return round_shift(mode, x.sig, shift, x.negative, dither);
}

/// roundToIntegralExact(a): to an integer, which is then rounded into the destination by the same
/// rule (and the same random bits) should it not have it.
SAMEBITS_INLINE constexpr outcome round_to_integral(const format_spec& a_format, std::uint64_t a,
                                                    const format_spec& to, const cast_rule& rule,
                                                    std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return nan_operand(to, is_signaling(a_format, a));
  if (x.kind != number_kind::finite || x.exponent >= number_bits - 1) {
    return result_of(to, rule, x, dither);
  }
  const auto r = integer_of(x, rule.round, dither);
  const flags changed = flag_if(r.inexact, flags::inexact);
  if (r.q == 0) return {zero_result(to, x.negative).code, changed};
  if (a_format.mantissa_bits == to.mantissa_bits && a_format.bias == to.bias) {
    // No second rounding: the format has the integer. A carry makes that of the next binade.
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

/// An integer in two's complement, zeros above the type's own bits.
struct integer_outcome {
  std::uint64_t bits;
  flags raised;
};

SAMEBITS_INLINE constexpr std::uint64_t integer_mask(int bits) {
  return ~std::uint64_t{0} >> (64 - bits);
}

/// The value of a by any mode. Out of range it is the nearest bound, of a NaN 0, both invalid and
/// not inexact.
SAMEBITS_INLINE constexpr integer_outcome to_integer(const format_spec& a_format, std::uint64_t a,
                                                     const integer_spec& to, rounding mode,
                                                     std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return {0, flags::invalid};
  if (x.kind == number_kind::zero) return {0, flags::none};
  const std::uint64_t mask = integer_mask(to.bits);
  const std::uint64_t largest = to.is_signed ? mask >> 1 : mask;
  const std::uint64_t least = to.is_signed ? largest + 1 : 0;  // magnitude
  const std::uint64_t bound = x.negative ? least : largest;
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
  if (beyond) return {bound, flags::invalid};  // -2^(bits - 1) looks like its magnitude
  return {(x.negative ? 0 - magnitude : magnitude) & mask, flag_if(inexact, flags::inexact)};
}

/// An integer rounded once; `bits` as in integer_outcome. 0 is +0.
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

/// a, rounded once. As in every conversion, a NaN keeps its sign where the rule says so.
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
  constexpr int far = 1000;  // there every format has long overflowed or vanished
  x.exponent += n < -far ? -far : n > far ? far : n;
  return result_of(to, rule, x, dither);
}

/// The exponent of |a|: floor(log2). 0 and NaN give INT32_MIN and Inf INT32_MAX, invalid.
SAMEBITS_INLINE constexpr integer_outcome exponent_of(const format_spec& a_format,
                                                      std::uint64_t a) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::infinite) return {0x7FFFFFFFu, flags::invalid};
  if (x.kind != number_kind::finite) return {0x80000000u, flags::invalid};
  return {static_cast<std::uint32_t>(x.exponent), flags::none};
}

}  // namespace samebits::numerics
