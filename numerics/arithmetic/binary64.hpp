// Binary64: sum, difference, product, quotient, power and square root, rounded to nearest even, and
// conversions from and to binary32, in integers.
//
// The results equal those of IEEE 754 hardware. They do not depend on build flags or on the state
// of the process. Operands must be >= 0 and not NaN, as loss scales, their factors, sums of squares
// and hyper-parameters of optimizers are. A NaN result is the canonical NaN.
#pragma once

#include <cstdint>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::binary64 {

inline constexpr std::uint64_t one = binary<std::uint64_t>::one;
inline constexpr std::uint64_t two = 0x4000000000000000u;
inline constexpr std::uint64_t inf = binary<std::uint64_t>::inf;
inline constexpr std::uint64_t nan = binary<std::uint64_t>::nan;

/// sig * 2^exponent with 2^52 <= sig < 2^53.
struct parts {
  std::uint64_t sig;
  int exponent;
};

/// Splits a finite number above zero.
SAMEBITS_INLINE constexpr parts split(std::uint64_t x) {
  constexpr int lowest = -1074;  // exponent of the smallest subnormal
  constexpr std::uint64_t implicit = std::uint64_t{1} << 52;
  if (x >= implicit) {
    return {(x & (implicit - 1)) | implicit, static_cast<int>(x >> 52) - 1 + lowest};
  }
  const int up = static_cast<int>(leading_zeros(x)) - 11;
  return {x << up, lowest - up};
}

/// sig * 2^exponent rounded to nearest even; 2^58 <= sig < 2^62. The last bit of sig may stand for
/// all lower bits.
SAMEBITS_INLINE constexpr std::uint64_t round(std::uint64_t sig, int exponent) {
  return encode_scaled(spec_of(format_id::fp64), cast_rule{}, false, sig, exponent, 0).code;
}

/// The upper half of the product. Its last bit is also set if the lower half is not zero.
SAMEBITS_INLINE constexpr std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t half = 0xFFFFFFFFu;
  const std::uint64_t low = (a & half) * (b & half);
  const std::uint64_t middle = (a >> 32) * (b & half) + (low >> 32);
  const std::uint64_t other = (a & half) * (b >> 32) + (middle & half);
  const std::uint64_t high = (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
  const bool rest = (other & half) != 0 || (low & half) != 0;
  return high | (rest ? 1 : 0);
}

/// RN(a * b).
SAMEBITS_INLINE constexpr std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  if (a == inf || b == inf) return a == 0 || b == 0 ? nan : inf;
  if (a == 0 || b == 0) return 0;
  const parts x = split(a);
  const parts y = split(b);
  const std::uint64_t high = high_product(x.sig << 11, y.sig << 11);  // the product is >= 2^126
  return round((high >> 2) | ((high & 3) != 0 ? 1 : 0), x.exponent + y.exponent + 44);
}

/// RN(a / b).
SAMEBITS_INLINE constexpr std::uint64_t divide(std::uint64_t a, std::uint64_t b) {
  if (a == inf) return b == inf ? nan : inf;
  if (b == 0) return a == 0 ? nan : inf;
  if (a == 0 || b == inf) return 0;
  const parts x = split(a);
  const parts y = split(b);
  // Long division, ten bits a step: the remainder stays below 2^53.
  std::uint64_t quotient = x.sig / y.sig;
  std::uint64_t remainder = x.sig % y.sig;
  for (int digit = 0; digit < 6; ++digit) {
    remainder <<= 10;
    quotient = (quotient << 10) | (remainder / y.sig);
    remainder %= y.sig;
  }
  return round(quotient | (remainder != 0 ? 1 : 0), x.exponent - y.exponent - 60);
}

/// RN(a + b).
SAMEBITS_INLINE constexpr std::uint64_t add(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t greater = a < b ? b : a;
  const std::uint64_t lesser = a < b ? a : b;
  if (greater == inf || lesser == 0) return greater;
  const parts x = split(greater);
  const parts y = split(lesser);
  constexpr int up = 8;  // moves sig below 2^61, so that the sum stays below 2^62
  const int down = x.exponent - y.exponent < 63 ? x.exponent - y.exponent : 63;
  const std::uint64_t high = y.sig << up;
  const std::uint64_t moved = high >> down;
  const bool rest = moved << down != high;
  return round((x.sig << up) + (moved | (rest ? 1 : 0)), x.exponent - up);
}

/// RN(a - b). Requires a finite a >= b.
SAMEBITS_INLINE constexpr std::uint64_t subtract(std::uint64_t a, std::uint64_t b) {
  if (b == 0) return a;
  if (a == b) return 0;
  const parts x = split(a);
  const parts y = split(b);
  constexpr int up = 9;  // x's sig becomes at least 2^61
  const int down = x.exponent - y.exponent < 63 ? x.exponent - y.exponent : 63;
  const std::uint64_t high = y.sig << up;
  const std::uint64_t moved = high >> down;
  const bool rest = moved << down != high;
  const std::uint64_t difference = (x.sig << up) - (moved | (rest ? 1 : 0));  // rounded to odd
  const int left = static_cast<int>(leading_zeros(difference)) - 2;  // many only if `rest` is false
  return round(difference << left, x.exponent - up - left);
}

/// base^exponent by products in a fixed order (binary powering).
SAMEBITS_INLINE constexpr std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = one;
  for (std::uint64_t left = exponent; left != 0; left >>= 1) {
    if ((left & 1) != 0) result = multiply(result, base);
    if (left != 1) base = multiply(base, base);
  }
  return result;
}

/// RN(sqrt(a)).
SAMEBITS_INLINE constexpr std::uint64_t square_root(std::uint64_t a) {
  if (a == 0 || a == inf) return a;
  const parts x = split(a);
  // a = n * 2^exponent with 2^52 <= n < 2^54 and an even exponent. The root of n * 4^34 has 61 bits
  // and is computed bit by bit.
  const int odd = x.exponent & 1;
  const std::uint64_t n = x.sig << odd;
  constexpr int zeros = 34;
  std::uint64_t root = 0;
  std::uint64_t rest = 0;  // remainder of the digits used so far: at most 2 * root
  for (int pair = 26 + zeros; pair >= 0; --pair) {
    const std::uint64_t digits = pair >= zeros ? (n >> (2 * (pair - zeros))) & 3 : 0;
    rest = (rest << 2) | digits;
    const std::uint64_t trial = (root << 2) | 1;
    const bool one_more = rest >= trial;
    if (one_more) rest -= trial;
    root = (root << 1) | (one_more ? 1 : 0);
  }
  return round(root | (rest != 0 ? 1 : 0), (x.exponent - odd) / 2 - zeros);
}

/// Converts to binary64; exact.
SAMEBITS_INLINE constexpr std::uint64_t widen(std::uint32_t binary32_bits) {
  return decode<std::uint64_t>(spec_of(format_id::fp32), binary32_bits);
}

/// RN(x): rounds to binary32.
SAMEBITS_INLINE constexpr std::uint32_t narrow(std::uint64_t x) {
  return static_cast<std::uint32_t>(
      encode<std::uint64_t>(spec_of(format_id::fp32), cast_rule{}, x, 0).code);
}

}  // namespace samebits::numerics::binary64
