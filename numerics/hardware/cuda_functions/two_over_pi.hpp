// Two over pi: the range reduction of CUDA's sinf and cosf for large operands (Payne and Hanek).
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary64.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

/// An angle in quarter turns and a rest.
template <class Word>
struct quarter_turns {
  Word angle;     ///< binary32, in radians
  Word quadrant;  ///< an integer in two's complement; its two lowest bits count
};

/// 32 bits of 2/pi from the place that belongs to each exponent; words in rising weight.
SAMEBITS_INLINE constexpr std::uint32_t two_over_pi_word(int i) {
  constexpr std::uint32_t words[6] = {0x3C439041, 0xDB629599, 0xF534DDC0,
                                      0xFC2757D1, 0x4E441529, 0xA2F9836E};
  return words[i];
}

/// An integer below 2^63 as binary64, times pi/2 * 2^-64, as binary32. Each of the three steps
/// rounds to nearest even.
SAMEBITS_HD constexpr std::uint32_t angle_of(std::uint64_t turns) {
  if (turns == 0) return 0;
  const int up = static_cast<int>(leading_zeros(turns));
  const std::uint64_t top = turns << up;
  const std::uint64_t sig = (top >> 2) | ((top & 3) != 0 ? 1 : 0);
  const std::uint64_t wide = binary64::round(sig, 2 - up);
  return binary64::narrow(binary64::multiply(wide, 0x3BF921FB54442D19));
}

/// x = n * pi/2 + angle for finite |x| >= 105615: x * 2/pi in 64 bits of fixed point.
SAMEBITS_HD constexpr quarter_turns<std::uint32_t> reduce_large_angle(std::uint32_t x) {
  const int exponent = static_cast<int>((x >> 23) & 255) - 128;
  const std::uint32_t significand = (x << 8) | 0x80000000u;
  std::uint32_t product[7] = {};
  std::uint64_t carry = 0;
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t sum = std::uint64_t{two_over_pi_word(i)} * significand + carry;
    product[i] = static_cast<std::uint32_t>(sum);
    carry = sum >> 32;
  }
  product[6] = static_cast<std::uint32_t>(carry);
  const int skipped = exponent >> 5;
  const int shift = exponent & 31;
  std::uint32_t high = product[6 - skipped];
  std::uint32_t low = product[5 - skipped];
  if (shift != 0) {
    high = (low >> (32 - shift)) + (high << shift);
    low = (product[4 - skipped] >> (32 - shift)) + (low << shift);
  }
  // Two bits of quadrant, then a fraction of a quarter turn, taken to -1/2 .. 1/2.
  const std::uint64_t fraction = ((std::uint64_t{high} << 32) | low) << 2;
  const bool upper_half = (fraction >> 63) != 0;
  const std::uint32_t quadrant = (upper_half ? 1u : 0u) + (high >> 30);
  const std::uint32_t angle = angle_of(upper_half ? ~fraction : fraction);
  const bool negative = (x >> 31) != 0;
  return {angle ^ (negative != upper_half ? 0x80000000u : 0u), negative ? 0u - quadrant : quadrant};
}

/// The turns of x where `large`, else `small`.
SAMEBITS_HD constexpr quarter_turns<std::uint32_t> reduce_large_angle(
    bool large, std::uint32_t x, const quarter_turns<std::uint32_t>& small) {
  return large ? reduce_large_angle(x) : small;
}

}  // namespace samebits::numerics::cuda_13_0
