// Binary32: sum, product and quotient of two binary32 numbers, rounded to nearest even, in
// integers.
//
// The results equal those of IEEE 754 hardware. They do not depend on build flags or on the state
// of the process.
#pragma once

#include <cstdint>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::binary32 {

inline constexpr std::uint32_t one = binary<std::uint32_t>::one;
inline constexpr std::uint32_t inf = binary<std::uint32_t>::inf;
inline constexpr std::uint32_t nan = binary<std::uint32_t>::nan;
inline constexpr std::uint32_t max_finite = 0x7F7FFFFFu;
inline constexpr std::uint32_t min_normal = 0x00800000u;  // 2^-126
inline constexpr std::uint32_t sign_bit = binary<std::uint32_t>::sign_bit;

SAMEBITS_INLINE constexpr std::uint32_t magnitude(std::uint32_t x) { return x & ~sign_bit; }
SAMEBITS_INLINE constexpr bool is_nan(std::uint32_t x) { return magnitude(x) > inf; }
SAMEBITS_INLINE constexpr bool is_inf(std::uint32_t x) { return magnitude(x) == inf; }
SAMEBITS_INLINE constexpr bool is_zero(std::uint32_t x) { return magnitude(x) == 0; }

/// The amax contribution of an element (contract §6): its magnitude; any NaN becomes the canonical
/// NaN.
SAMEBITS_INLINE constexpr std::uint32_t amax_bits(std::uint32_t x) {
  return is_nan(x) ? nan : magnitude(x);
}

/// sig * 2^exponent with 2^23 <= sig < 2^24.
struct parts {
  std::uint64_t sig;
  int exponent;
};

/// Splits a finite non-zero number; ignores its sign.
SAMEBITS_INLINE constexpr parts split(std::uint32_t x) {
  constexpr int lowest = -149;  // exponent of the smallest subnormal
  const std::uint32_t m = magnitude(x);
  if (m >= min_normal) {
    return {(m & 0x007FFFFFu) | min_normal, static_cast<int>(m >> 23) - 1 + lowest};
  }
  const int up = static_cast<int>(leading_zeros(m)) - 8;
  return {std::uint64_t{m} << up, lowest - up};
}

/// sig * 2^exponent rounded to nearest even; sig < 2^62. If sig >= 2^26, its last bit may stand for
/// all lower bits.
SAMEBITS_INLINE constexpr std::uint32_t round(bool negative, std::uint64_t sig, int exponent) {
  return static_cast<std::uint32_t>(
      encode_scaled(spec_of(format_id::fp32), cast_rule{}, negative, sig, exponent, 0).code);
}

/// RN(a * b).
SAMEBITS_INLINE constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sign = (a ^ b) & sign_bit;
  if (is_nan(a) || is_nan(b)) return nan;
  if (is_inf(a) || is_inf(b)) return is_zero(a) || is_zero(b) ? nan : sign | inf;
  if (is_zero(a) || is_zero(b)) return sign;
  const parts x = split(a);
  const parts y = split(b);
  return round(sign != 0, x.sig * y.sig, x.exponent + y.exponent);
}

/// RN(a / b).
SAMEBITS_INLINE constexpr std::uint32_t divide(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t sign = (a ^ b) & sign_bit;
  if (is_nan(a) || is_nan(b)) return nan;
  if (is_inf(a)) return is_inf(b) ? nan : sign | inf;
  if (is_zero(b)) return is_zero(a) ? nan : sign | inf;
  if (is_zero(a) || is_inf(b)) return sign;
  constexpr int up = 36;  // gives a quotient of at least 35 bits
  const parts x = split(a);
  const parts y = split(b);
  const std::uint64_t numerator = x.sig << up;
  const std::uint64_t quotient = numerator / y.sig;
  const bool rest = quotient * y.sig != numerator;
  return round(sign != 0, quotient | (rest ? 1 : 0), x.exponent - y.exponent - up);
}

/// RN(a + b).
SAMEBITS_INLINE constexpr std::uint32_t add(std::uint32_t a, std::uint32_t b) {
  if (is_nan(a) || is_nan(b)) return nan;
  if (is_inf(a)) return is_inf(b) && a != b ? nan : a;
  if (is_inf(b)) return b;
  if (is_zero(a)) return is_zero(b) ? a & b : b;
  if (is_zero(b)) return a;
  const bool swapped = magnitude(a) < magnitude(b);
  const std::uint32_t larger = swapped ? b : a;
  const parts x = split(larger);
  const parts y = split(swapped ? a : b);
  constexpr int up = 36;  // the smaller term loses bits only if at most one leading bit cancels
  const std::uint64_t low = y.sig << up;
  const int distance = x.exponent - y.exponent;
  const std::uint64_t moved = distance > 63 ? 0 : low >> distance;
  const bool rest = distance > 63 || (moved << distance) != low;
  const std::uint64_t lesser = moved | (rest ? 1 : 0);  // rounded to odd, and so is the sum
  const std::uint64_t sum = (x.sig << up) + (((a ^ b) & sign_bit) != 0 ? 0 - lesser : lesser);
  if (sum == 0) return 0;
  return round((larger & sign_bit) != 0, sum, x.exponent - up);
}

}  // namespace samebits::numerics::binary32
