// Counted: short cuts of a quantization's statistics.
#pragma once

#include <cstdint>

#include "numerics/config.hpp"
#include "samebits/format.hpp"

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

/// Codes of magnitudes of a 16-bit format between which RN32(x * x) is exact: [least, most) and
/// zero. Squares of a significand of 8 or 11 bits fit one of 24. Of bf16, x >= 2^-66 is a multiple
/// of 2^-73 and its square of 2^-146, so that the low word of wide_square() is 0; x < 2^64 has a
/// square below 2^128. fp16 stays between 2^-24 and 2^16.
struct magnitude_range {
  std::uint32_t least, most;
};
SAMEBITS_INLINE constexpr magnitude_range exact_squares(format_id from) {
  if (from == format_id::bf16) return {(127 - 66) << 7, (127 + 64) << 7};
  return {1, 0x7C00};
}

/// Whether both halves of a word, magnitudes of 16 bits, are greater than those of `small`.
SAMEBITS_INLINE constexpr bool both_above(std::uint32_t magnitudes, std::uint32_t small) {
  // 0x8000 + magnitude - small - 1 keeps bit 15 of a half, and borrows from no other.
  return (((magnitudes | 0x80008000u) - small - 0x00010001u) & 0x80008000u) == 0x80008000u;
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
