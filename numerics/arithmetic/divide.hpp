// Divide: quotients, and IEEE 754 remainders.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// A positive result sig * 2^exponent. The last bit of sig stands for all lower bits.
struct magnitude {
  std::uint64_t sig;
  int exponent;
};

/// x / y with as many bits as rounding into `to` needs. Significands drop the low bits that their
/// formats lack, so that small formats need only a 32-bit division.
SAMEBITS_INLINE constexpr magnitude quotient_of(const format_spec& a_format, const number& x,
                                                const format_spec& b_format, const number& y,
                                                const format_spec& to, rounding mode) {
  if (mode == rounding::stochastic) {  // needs 33 bits beyond the precision: two division steps
    const std::uint64_t numerator = x.sig << 40;
    const std::uint64_t upper = numerator / y.sig;
    const std::uint64_t rest = (numerator - upper * y.sig) << 20;
    const std::uint64_t lower = rest / y.sig;
    return {(upper << 20) | lower | (lower * y.sig != rest ? 1 : 0), x.exponent - y.exponent - 60};
  }
  const int a_shed = number_bits - 1 - a_format.mantissa_bits;
  const int b_shed = number_bits - 1 - b_format.mantissa_bits;
  const int a_bits = number_bits - a_shed;
  const int b_bits = number_bits - b_shed;
  // Bits of the numerator: 2 beyond the precision.
  const int wanted = to.mantissa_bits + 3 + b_bits;
  const int up = wanted > a_bits ? wanted - a_bits : 0;
  const int exponent = x.exponent - y.exponent + (b_bits - a_bits) - up;
  const std::uint64_t numerator = (x.sig >> a_shed) << up;
  const std::uint64_t denominator = y.sig >> b_shed;
  if (a_bits + up <= 32) {
    const auto n = static_cast<std::uint32_t>(numerator);
    const auto d = static_cast<std::uint32_t>(denominator);
    const std::uint32_t q = n / d;
    return {q | (q * d != n ? 1u : 0u), exponent};
  }
  const std::uint64_t q = numerator / denominator;
  return {q | (q * denominator != numerator ? 1 : 0), exponent};
}

/// a / b.
SAMEBITS_INLINE constexpr outcome divide(const format_spec& a_format, std::uint64_t a,
                                         const format_spec& b_format, std::uint64_t b,
                                         const format_spec& to, const cast_rule& rule,
                                         std::uint64_t dither) {
  const number x = unpack(a_format, a);
  const number y = unpack(b_format, b);
  const bool negative = x.negative != y.negative;
  if (x.kind == number_kind::finite && y.kind == number_kind::finite) [[likely]] {
    const magnitude q = quotient_of(a_format, x, b_format, y, to, rule.rounding);
    return round_result(to, rule, negative, q.sig, q.exponent, dither);
  }
  if (x.kind == number_kind::nan || y.kind == number_kind::nan) {
    return nan_operand(to, is_signaling(a_format, a) || is_signaling(b_format, b));
  }
  if (x.kind == y.kind) return nan_result(to, flags::invalid);  // 0 / 0, Inf / Inf
  if (x.kind == number_kind::infinite) return infinite_result(to, rule, negative);
  if (y.kind == number_kind::zero) {
    return {infinite_result(to, rule, negative).code, flags::divide_by_zero};
  }
  return zero_result(to, negative);
}

/// The magnitude of x - n * y with n = RNE(x / y), and whether its sign differs from the sign of x.
/// Requires x.exponent >= y.exponent - 1; for smaller x, n is 0.
struct exact_remainder {
  magnitude rest;  ///< sig 0 means that the remainder is zero
  bool flipped;
};

/// Computes exact_remainder with integer operations.
SAMEBITS_INLINE constexpr exact_remainder remainder_of(const number& x, const number& y) {
  constexpr int fraction = number_bits - 1;
  int distance = x.exponent - y.exponent;
  // In units of the smaller exponent: x mod 2y gives the remainder and tells whether n is odd.
  const std::uint64_t divisor = distance < 0 ? y.sig << 1 : y.sig;
  const int unit = (distance < 0 ? x.exponent : y.exponent) - fraction;
  const std::uint64_t twice = divisor << 1;
  std::uint64_t rest = x.sig;  // always below `twice`
  constexpr int step = 38;     // rest < 2^26
  for (; distance > 0; distance -= step) {
    rest = (rest << (distance < step ? distance : step)) % twice;
  }
  const bool odd = rest >= divisor;
  if (odd) rest -= divisor;
  const bool up = rest * 2 > divisor || (rest * 2 == divisor && odd);
  return {{up ? divisor - rest : rest, unit}, up};
}

/// remainder(a, b) of IEEE 754.
SAMEBITS_INLINE constexpr outcome remainder(const format_spec& a_format, std::uint64_t a,
                                            const format_spec& b_format, std::uint64_t b,
                                            const format_spec& to, const cast_rule& rule,
                                            std::uint64_t dither) {
  const number x = unpack(a_format, a);
  const number y = unpack(b_format, b);
  if (x.kind == number_kind::finite && y.kind == number_kind::finite) [[likely]] {
    if (x.exponent < y.exponent - 1) return result_of(to, rule, x, dither);  // |x| < |y| / 2
    const exact_remainder r = remainder_of(x, y);
    if (r.rest.sig == 0) return zero_result(to, x.negative);
    return round_result(to, rule, x.negative != r.flipped, r.rest.sig, r.rest.exponent, dither);
  }
  if (x.kind == number_kind::nan || y.kind == number_kind::nan) {
    return nan_operand(to, is_signaling(a_format, a) || is_signaling(b_format, b));
  }
  if (x.kind == number_kind::infinite || y.kind == number_kind::zero) {
    return nan_result(to, flags::invalid);
  }
  return result_of(to, rule, x, dither);
}

}  // namespace samebits::numerics
