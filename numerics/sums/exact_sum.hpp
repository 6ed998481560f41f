// Exact sums: fixed-point numbers wide enough for every product of binary32 numbers.
#pragma once

#include <cstdint>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// A signed sum in units of 2^Lowest: two's complement, 64 * Limbs bits, little-endian limbs. The
/// caller must not exceed this range.
template <int Limbs, int Lowest>
class exact_sum {
 public:
  static constexpr int limbs = Limbs;
  static constexpr int lowest = Lowest;

  /// Adds (-1)^negative * significand * 2^exponent. Requires exponent >= Lowest.
  SAMEBITS_HD constexpr void add(bool negative, std::uint64_t significand, int exponent) {
    const int position = exponent - Lowest;
    const int bit = position % 64;
    const std::uint64_t high = bit == 0 ? 0 : significand >> (64 - bit);
    if (negative) {
      subtract_at(position / 64, significand << bit, high);
    } else {
      add_at(position / 64, significand << bit, high);
    }
  }

  /// Adds (-1)^negative * |x| * significand * 2^exponent, negated if x is negative. Requires
  /// significand < 2^48 and exponent >= Lowest - OtherLowest.
  template <int OtherLimbs, int OtherLowest>
  SAMEBITS_HD constexpr void add_product(const exact_sum<OtherLimbs, OtherLowest>& x, bool negative,
                                         std::uint64_t significand, int exponent) {
    const exact_sum<OtherLimbs, OtherLowest> magnitude = x.magnitude();
    for (int i = 0; i < 2 * OtherLimbs; ++i) {  // 32-bit halves of limbs; each product has 80 bits
      const std::uint64_t half = (magnitude.limb(i / 2) >> (i % 2 * 32)) & 0xFFFFFFFFu;
      const std::uint64_t low = half * (significand & 0xFFFFFFu);
      const std::uint64_t high = half * (significand >> 24);
      const int at = exponent + OtherLowest + 32 * i;
      if (low != 0) add(negative != x.is_negative(), low, at);
      if (high != 0) add(negative != x.is_negative(), high, at + 24);
    }
  }

  [[nodiscard]] SAMEBITS_HD constexpr std::uint64_t limb(int i) const { return limb_[i]; }
  [[nodiscard]] SAMEBITS_HD constexpr bool is_negative() const {
    return (limb_[Limbs - 1] >> 63) != 0;
  }
  [[nodiscard]] SAMEBITS_HD constexpr exact_sum magnitude() const {
    if (!is_negative()) return *this;
    exact_sum m;
    std::uint64_t carry = 1;
    for (int i = 0; i < Limbs; ++i) {
      m.limb_[i] = ~limb_[i] + carry;
      carry = carry != 0 && m.limb_[i] == 0 ? 1u : 0u;
    }
    return m;
  }

  /// Rounds the sum once to nearest even into a format with overflow::ieee; 0 gives +0.
  [[nodiscard]] SAMEBITS_HD constexpr std::uint64_t round(const format_spec& to) const {
    const exact_sum m = magnitude();
    int top = Limbs - 1;
    while (top >= 0 && m.limb_[top] == 0) --top;
    if (top < 0) return 0;
    // Takes 62 bits from the leading one on; the last of them stands for all lower bits.
    const int up = static_cast<int>(leading_zeros(m.limb_[top]));
    const std::uint64_t next = top > 0 ? m.limb_[top - 1] : 0;
    std::uint64_t bits = m.limb_[top] << up;
    if (up > 0) bits |= next >> (64 - up);
    bool rest = (bits & 3) != 0 || (next << up) != 0;
    for (int i = 0; i < top - 1; ++i) rest = rest || m.limb_[i] != 0;
    const std::uint64_t significand = (bits >> 2) | (rest ? 1u : 0u);
    const int exponent = Lowest + 64 * top - up + 2;
    return encode_scaled(to, cast_rule{}, is_negative(), significand, exponent, 0).code;
  }

 private:
  SAMEBITS_HD constexpr void add_at(int i, std::uint64_t low, std::uint64_t high) {
    limb_[i] += low;
    std::uint64_t carry = limb_[i] < low ? 1u : 0u;
    for (++i; i < Limbs && (carry | high) != 0; ++i) {
      const std::uint64_t sum = limb_[i] + carry;
      carry = sum < carry ? 1u : 0u;
      limb_[i] = sum + high;
      carry += limb_[i] < high ? 1u : 0u;
      high = 0;
    }
  }
  SAMEBITS_HD constexpr void subtract_at(int i, std::uint64_t low, std::uint64_t high) {
    std::uint64_t borrow = limb_[i] < low ? 1u : 0u;
    limb_[i] -= low;
    for (++i; i < Limbs && (borrow | high) != 0; ++i) {
      const std::uint64_t difference = limb_[i] - borrow;
      borrow = limb_[i] < borrow ? 1u : 0u;
      borrow += difference < high ? 1u : 0u;
      limb_[i] = difference - high;
      high = 0;
    }
  }

  std::uint64_t limb_[static_cast<unsigned>(Limbs)] = {};
};

/// Holds sums of products of two binary32 numbers. A normalized binary32 number is a 24-bit
/// significand times at least 2^-172 (the smallest subnormal). Products range from 2^-344 to 2^256;
/// the sum has room for 2^64 of them and a sign.
using product_sum = exact_sum<11, -344>;

/// Holds sums of such products times two more binary32 numbers: 2^-688 to 2^576.
using scaled_product_sum = exact_sum<20, -688>;

}  // namespace samebits::numerics
