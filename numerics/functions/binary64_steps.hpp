// Binary64 steps: the operations that correctly rounded functions consist of, in integers.
//
// All operands and results are binary64 bits and finite; results are rounded to nearest even, as
// IEEE 754 hardware does. The functions are templates of a Word: std::uint64_t, or a class of
// lanes. The steps for std::uint64_t stand here and define the results. A class of lanes brings its
// own steps in its own namespace, where argument-dependent lookup finds them. So functions call
// steps without a namespace.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary64.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::real {

/// The bits of a binary64 literal: bits_of(0x1.8p52).
template <class Literal>
consteval std::uint64_t bits_of(Literal x) {
  return __builtin_bit_cast(std::uint64_t, x);
}

inline constexpr std::uint64_t sign_bit = 0x8000000000000000u;
inline constexpr std::uint64_t inf = 0x7FF0000000000000u;
inline constexpr std::uint64_t nan = 0x7FFFFFFFFFFFFFFFu;
inline constexpr std::uint64_t one = bits_of(1.0);

/// An integer of 128 bits.
struct wide {
  std::uint64_t high;
  std::uint64_t low;
};
SAMEBITS_HD constexpr bool less(const wide& a, const wide& b) {
  return a.high != b.high ? a.high < b.high : a.low < b.low;
}
SAMEBITS_HD constexpr wide sum(const wide& a, const wide& b) {
  const std::uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < a.low ? 1 : 0), low};
}
SAMEBITS_HD constexpr wide difference(const wide& a, const wide& b) {
  return {a.high - b.high - (a.low < b.low ? 1 : 0), a.low - b.low};
}
SAMEBITS_HD constexpr wide shifted_up(const wide& a, int n) {
  if (n == 0) return a;
  if (n >= 64) return {a.low << (n - 64), 0};
  return {(a.high << n) | (a.low >> (64 - n)), a.low << n};
}
/// a / 2^n; the last bit is also set if a set bit is dropped.
SAMEBITS_HD constexpr wide shifted_to_odd(const wide& a, int n) {
  if (n == 0) return a;
  if (n >= 128) return {0, (a.high | a.low) != 0 ? 1u : 0u};
  if (n >= 64) {
    const int m = n - 64;
    const std::uint64_t dropped = m == 0 ? a.low : a.low | (a.high << (64 - m));
    return {0, (a.high >> m) | (dropped != 0 ? 1 : 0)};
  }
  const std::uint64_t low = (a.low >> n) | (a.high << (64 - n));
  return {a.high >> n, low | (a.low << (64 - n) != 0 ? 1 : 0)};
}
/// a * b.
SAMEBITS_HD constexpr wide product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t half = 0xFFFFFFFFu;
  const std::uint64_t low = (a & half) * (b & half);
  const std::uint64_t middle = (a >> 32) * (b & half) + (low >> 32);
  const std::uint64_t other = (a & half) * (b >> 32) + (middle & half);
  return {(a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32), (other << 32) | (low & half)};
}

/// (-1)^negative * magnitude * 2^exponent, rounded.
SAMEBITS_HD constexpr std::uint64_t rounded_wide(bool negative, const wide& magnitude,
                                                 int exponent) {
  const int up = static_cast<int>(magnitude.high != 0 ? leading_zeros(magnitude.high)
                                                      : 64 + leading_zeros(magnitude.low));
  const wide top = shifted_up(magnitude, up);  // the highest of 128 bits is set
  const std::uint64_t rest = (top.high & 3) | top.low;
  return encode_scaled(spec_of(format_id::fp64), cast_rule{}, negative,
                       (top.high >> 2) | (rest != 0 ? 1 : 0), exponent - up + 66, 0)
      .code;
}

/// RN(a * b + c). Like div() and sqrt() a call: functions consist of dozens of them.
SAMEBITS_NOINLINE constexpr std::uint64_t fma(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t negative = (a ^ b) & sign_bit;
  const std::uint64_t size_a = a & ~sign_bit;
  const std::uint64_t size_b = b & ~sign_bit;
  const std::uint64_t size_c = c & ~sign_bit;
  if (size_a == 0 || size_b == 0) {
    return size_c == 0 ? negative & c : c;  // -0 + -0 = -0; other sums of zeros are +0
  }
  const binary64::parts x = binary64::split(size_a);
  const binary64::parts y = binary64::split(size_b);
  // Both terms get their highest bit at bit 124 or 125, so that their sum fits 128 bits.
  const wide term = shifted_up(product(x.sig, y.sig), 20);
  const int exponent = x.exponent + y.exponent - 20;
  if (size_c == 0) return rounded_wide(negative != 0, term, exponent);
  const binary64::parts z = binary64::split(size_c);
  const wide addend = shifted_up({0, z.sig}, 72);
  const int distance = exponent - (z.exponent - 72);
  const int common = distance > 0 ? exponent : exponent - distance;
  const wide p = shifted_to_odd(term, distance > 0 ? 0 : -distance);
  const wide q = shifted_to_odd(addend, distance > 0 ? distance : 0);
  if (negative == (c & sign_bit)) return rounded_wide(negative != 0, sum(p, q), common);
  if (less(p, q)) return rounded_wide(negative == 0, difference(q, p), common);
  if (!less(q, p)) return 0;
  return rounded_wide(negative != 0, difference(p, q), common);
}

SAMEBITS_HD constexpr std::uint64_t neg(std::uint64_t a) { return a ^ sign_bit; }
/// RN(a + b), RN(a - b), RN(a * b), RN(a / b) for b != 0, RN(sqrt(a)) for a >= 0.
SAMEBITS_HD constexpr std::uint64_t add(std::uint64_t a, std::uint64_t b) { return fma(a, one, b); }
SAMEBITS_HD constexpr std::uint64_t sub(std::uint64_t a, std::uint64_t b) {
  return fma(a, one, neg(b));
}
SAMEBITS_HD constexpr std::uint64_t mul(std::uint64_t a, std::uint64_t b) {
  return fma(a, b, sign_bit);  // adding -0 keeps the sign of a zero
}
SAMEBITS_NOINLINE constexpr std::uint64_t div(std::uint64_t a, std::uint64_t b) {
  return binary64::divide(a & ~sign_bit, b & ~sign_bit) | ((a ^ b) & sign_bit);
}
SAMEBITS_NOINLINE constexpr std::uint64_t sqrt(std::uint64_t a) { return binary64::square_root(a); }

/// Whether a < b; +0 and -0 are equal.
SAMEBITS_HD constexpr bool lt(std::uint64_t a, std::uint64_t b) {
  if (((a | b) & ~sign_bit) == 0) return false;
  const bool negative = (a & sign_bit) != 0;
  if (((a ^ b) & sign_bit) != 0) return negative;
  return negative ? b < a : a < b;
}

/// The polynomial with these coefficients, the highest degree first, at x: Horner's scheme.
template <class Word, class... Lower>
SAMEBITS_INLINE constexpr Word horner(Word x, std::uint64_t highest, Lower... lower) {
  Word q = highest;
  ((q = fma(q, x, Word(lower))), ...);
  return q;
}

template <class Word>
SAMEBITS_INLINE constexpr Word magnitude(Word x) {
  return x & Word(~sign_bit);
}
template <class Word>
SAMEBITS_INLINE constexpr Word with_sign(Word size, Word sign) {
  return size | (sign & Word(sign_bit));
}
/// x between two numbers.
template <class Word>
SAMEBITS_INLINE constexpr Word clamp(Word x, Word low, Word high) {
  const Word above = select(lt(x, low), low, x);
  return select(lt(high, above), high, above);
}
/// x, or a number of x's sign and magnitude `least` if |x| < least.
template <class Word>
SAMEBITS_INLINE constexpr Word away_from_zero(Word x, Word least) {
  return select(magnitude(x) < least, with_sign(least, x), x);
}

/// y, or `result` if x is `operand`: an operand whose exact value lies closer to a tie or step than
/// the error of y. The exhaustive sweep finds these operands; result is the exact value rounded to
/// odd.
template <class Word>
SAMEBITS_INLINE constexpr Word exception(Word x, Word y, std::uint64_t operand,
                                         std::uint64_t result) {
  return select(x == Word(operand), Word(result), y);
}

/// The sum y + error rounded to odd: y if it is exact, else that binary64 neighbour of the sum
/// whose last bit is 1. Later roundings into formats of at most 51 bits then see on which side of a
/// number or a tie the sum lies. Requires |error| of at most half a unit in the last place of y.
template <class Word>
SAMEBITS_INLINE constexpr Word to_odd(Word y, Word error) {
  const Word bit = std::uint64_t{1};
  // y is too large in magnitude if the signs differ.
  const Word differ = ((y >> std::uint64_t{63}) + (error >> std::uint64_t{63})) & bit;
  return select(magnitude(error) == Word(std::uint64_t{0}), y, (y - differ) | bit);
}

/// a + b rounded to odd. Requires |a| >= |b|, or a = 0.
template <class Word>
SAMEBITS_INLINE constexpr Word sum_to_odd(Word a, Word b) {
  const Word y = add(a, b);
  return to_odd(y, add(sub(a, y), b));
}

}  // namespace samebits::numerics::real
