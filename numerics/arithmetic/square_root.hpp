// Square root: rounded once; computed from an estimate and exact integer remainders.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/divide.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// floor(sqrt(n)), and whether the root is inexact.
struct integer_root {
  std::uint64_t root;
  bool inexact;
};

/// The root of n * 4^zeros, computed bit by bit. Requires n < 2^62; the root has at most 60 bits.
SAMEBITS_INLINE constexpr integer_root root_by_digits(std::uint64_t n, int zeros) {
  std::uint64_t root = 0;
  std::uint64_t rest = 0;  // remainder of the digits used so far: at most 2 * root
  for (int pair = 30 + zeros; pair >= 0; --pair) {
    const std::uint64_t digits = pair >= zeros ? (n >> (2 * (pair - zeros))) & 3 : 0;
    rest = (rest << 2) | digits;
    const std::uint64_t trial = (root << 2) | 1;
    const bool one = rest >= trial;
    if (one) rest -= trial;
    root = (root << 1) | (one ? 1 : 0);
  }
  return {root, rest != 0};
}

/// Estimates 1 / sqrt(n / 2^24) to 11 bits, in units of 2^-16. Here n = sig << (1 + odd) and 2^23
/// <= sig < 2^24.
///
/// Evaluates the cubic through 1 / sqrt(1 + t) at the four Chebyshev points of 0 <= t < 1. A table
/// would be slow in device code.
SAMEBITS_INLINE constexpr std::uint64_t reciprocal_root(std::uint64_t sig, int odd) {
  const auto t = static_cast<std::uint32_t>(sig >> 7) & 0xFFFFu;  // in 2^-16
  const std::uint32_t c2 = 17845u - ((5427u * t) >> 16);
  const std::uint32_t c1 = 31596u - ((c2 * t) >> 16);
  const std::uint32_t r = 65500u - ((c1 * t) >> 16);
  const std::uint32_t half_power = 65536u - 19195u * static_cast<std::uint32_t>(odd);
  return (std::uint64_t{r} * half_power) >> 16;  // r * 2^(-odd / 2)
}

/// One Newton step: s + (n - s^2) * r / 2 - 1/8, rounded down. Requires 2^50 <= n < 2^52. r is an
/// estimate of 1 / sqrt(n / 2^50) in units of 2^-16.
SAMEBITS_INLINE constexpr std::uint64_t refined_root(std::uint64_t n, std::uint64_t s,
                                                     std::uint64_t r) {
  constexpr std::int64_t eighth = std::int64_t{1} << 35;
  const auto rest = static_cast<std::int64_t>(n - s * s) >> 4;
  return s + static_cast<std::uint64_t>((rest * static_cast<std::int64_t>(r) - eighth) >> 38);
}

/// Corrects an estimate that is the root or one less. Uses a mask because no branch predictor could
/// guess the outcome.
SAMEBITS_INLINE constexpr integer_root corrected_root(std::uint64_t n, std::uint64_t s) {
  const std::uint64_t rest = n - s * s;
  const std::uint64_t step = 2 * s + 1;  // (s + 1)^2 - s^2
  const std::uint64_t next = rest >= step ? 1 : 0;
  return {s + next, rest != (step & (0 - next))};
}

/// The root of n * 4^zeros for 2^24 <= n < 2^26, with zeros = 0 (13 bits) or 13 (26 bits). r is an
/// estimate of 1 / sqrt(n / 2^24) to 11 bits, in units of 2^-16.
///
/// Error bounds, in units of the 26th bit: n * r is within 2^16 of the root, and the first step
/// within 32. After the second step the estimate is at most 1.2 below the root and never above it.
/// These bounds follow from r's error (at most 32 * 2^-10) and the squared error of the first step
/// (32 / 2^25).
SAMEBITS_INLINE constexpr integer_root root_of(std::uint64_t n, std::uint64_t r, int zeros) {
  const std::uint64_t padded = n << 26;
  const std::uint64_t s = refined_root(padded, (n * r) >> 15, r);
  if (zeros == 0) return corrected_root(n, (s - 128) >> 13);
  return corrected_root(padded, refined_root(padded, s, r));
}

/// The root of a positive number with as many bits as rounding into `to` needs. Its leading bit is
/// bit 61.
SAMEBITS_INLINE constexpr magnitude root_of_number(const number& x, const format_spec& to,
                                                   rounding mode) {
  // |x| = n * 2^exponent with an even exponent and 2^24 <= n < 2^26.
  const int odd = x.exponent & 1;
  const std::uint64_t n = x.sig << (1 + odd);
  const int exponent = x.exponent - number_bits - odd;
  const bool stochastic = mode == rounding::stochastic;
  const int zeros = stochastic ? 46 : to.mantissa_bits + 3 <= 13 ? 0 : 13;
  const integer_root r =
      stochastic ? root_by_digits(n, zeros) : root_of(n, reciprocal_root(x.sig, odd), zeros);
  const int up = result_bits - 13 - zeros;
  return {(r.root | (r.inexact ? 1 : 0)) << up, (exponent >> 1) - zeros - up};
}

/// sqrt(a).
SAMEBITS_INLINE constexpr outcome square_root(const format_spec& a_format, std::uint64_t a,
                                              const format_spec& to, const cast_rule& rule,
                                              std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return nan_operand(to, is_signaling(a_format, a));
  if (x.kind == number_kind::zero) return zero_result(to, x.negative);  // sqrt(-0) = -0
  if (x.negative) return nan_result(to, flags::invalid);
  if (x.kind == number_kind::infinite) return infinite_result(to, rule, false);
  const magnitude s = root_of_number(x, to, rule.rounding);
  return round_normalized(to, rule, false, s.sig, s.exponent + result_bits - 1, dither);
}

}  // namespace samebits::numerics
