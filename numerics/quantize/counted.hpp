// Counted: short cuts of a quantization's statistics.
#pragma once

#include <cstdint>

#include "numerics/bits/decode.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// Sums of squares are formed as multiples of 2^squares_exponent, and multiplied out at the end.
inline constexpr int squares_exponent = 896;

/// The binary64 bits of v * 2^-896, v >= +0 being binary32 bits: the exponents' biases differ by
/// that, so fields and subnormals keep their bits.
///
/// Sums of such numbers round as those of the v would. A sum that is normal has its 53 bits here as
/// there; one below 2^-1022 is a sum of v below 2^-126, which as multiples of 2^-149 are exact in
/// both.
SAMEBITS_INLINE constexpr std::uint64_t wide_square(std::uint32_t v) {
  return std::uint64_t{v} << 29;
}

/// Magnitudes as codes of their format: [least, most).
struct magnitude_range {
  std::uint32_t least, most;
};

/// Where RN32(x * x) of a 16-bit format's x is exact, besides zero. Squares of a significand of 8
/// or 11 bits fit one of 24. Of bf16, x >= 2^-66 is a multiple of 2^-73 and its square of 2^-146,
/// so that the low word of wide_square() is 0; x < 2^64 has a square below 2^128. fp16 stays
/// between 2^-24 and 2^16.
SAMEBITS_INLINE constexpr magnitude_range exact_squares(format_id from) {
  if (from == format_id::bf16) return {(127 - 66) << 7, (127 + 64) << 7};
  return {1, 0x7C00};
}

/// The distance of codes of a 16-bit format up to which a sum of 32 squares is exact in binary64,
/// in any order: from the largest magnitude down to the least that is not zero.
///
/// Of significands of p bits and d binades the squares are multiples of 2^(2 e - 2 (p - 1)) for the
/// least exponent e, and their sum is below 2^(2 (e + d + 1) + 5): it needs 2 d + 2 p + 5 bits, at
/// most 53.
SAMEBITS_INLINE constexpr std::uint32_t exact_sum_reach(format_id from) {
  const int mantissa = spec_of(from).mantissa_bits;
  return static_cast<std::uint32_t>((53 - 5 - 2 * (mantissa + 1)) / 2) << mantissa;
}

/// Whether both halves of a word, magnitudes of 16 bits, are greater than those of `small`.
SAMEBITS_INLINE constexpr bool both_above(std::uint32_t magnitudes, std::uint32_t small) {
  // 0x8000 + magnitude - small - 1 keeps bit 15 of a half, and borrows from no other.
  return (((magnitudes | 0x80008000u) - small - 0x00010001u) & 0x80008000u) == 0x80008000u;
}

/// The scale of a tile whose amax is `times` that of another tile: a power of two, as the
/// difference of binary32's exponent fields in their place.
///
/// All scale maths divide, multiply and round significands alike, whatever the exponent, as long as
/// no result is subnormal or infinite and no bound is met: plain_amaxes().
SAMEBITS_INLINE constexpr tile_scale scale_times(const tile_scale& s, std::uint32_t times) {
  return {s.stored + times, s.factor - times};
}

/// The amaxes, binary32 bits, whose scales scale_times() finds from that of one in [1, 2) under the
/// same rule without bounds. Not under scale_math::div, whose factor is the scale.
SAMEBITS_INLINE constexpr magnitude_range plain_amaxes(const scale_rule& rule) {
  constexpr std::uint32_t least = (127u - 96u) << 23, most = (127u + 96u) << 23;
  if (rule.upper_bound < most) return {1, 1};
  return {rule.eps > least ? rule.eps : least, most};
}

/// The same as codes of a 16-bit format: those whose values are in a range of binary32 bits.
SAMEBITS_INLINE constexpr magnitude_range codes_within(format_id from, magnitude_range range) {
  const auto first_at = [from](std::uint32_t bits) {  // the least code of at least that value
    std::uint32_t low = 0, high = 0x7FFF;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (decode<std::uint32_t>(spec_of(from), middle) < bits) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  return {first_at(range.least), first_at(range.most)};
}

/// The code of a magnitude of `from`, fp32, bf16 or fp16, above which no element of a tile has the
/// code 0 when scaled and rounded to nearest even; the tile's stored scale is s. It need not be the
/// least.
///
/// The code is 0 up to half of the least subnormal number, h. s and 1 over the factor that elements
/// are multiplied by differ by roundings, less than the 2^-6 that are added here; where s is
/// subnormal s * h is so small that the least normal number stands for it.
SAMEBITS_INLINE constexpr std::uint32_t largest_vanishing(format_id from, const format_spec& to,
                                                          std::uint32_t s) {
  // At least s * h * (1 + 2^-6), and a normal number: h is a power of two, and 2^18 places of a
  // significand are 2^-6 of it or more.
  const std::uint32_t down = static_cast<std::uint32_t>(to.bias + to.mantissa_bits) << 23;
  const std::uint32_t grown = s + (1u << 18), least = down + (1u << 23);
  const std::uint32_t t = (grown < least ? least : grown) - down;
  if (from == format_id::fp32) return t;
  if (from == format_id::bf16) return (t >> 16) + 1;
  const std::uint32_t field = t >> 23, significand = (t & 0x007FFFFFu) | 0x00800000u;
  constexpr std::uint32_t bias_apart = 127 - 15;
  if (field >= bias_apart + 31) return 0x7C00;
  if (field > bias_apart) return ((t - (bias_apart << 23)) >> 13) + 1;
  return field + 11 < bias_apart ? 1 : (significand >> (126 - field)) + 1;
}

}  // namespace samebits::numerics
