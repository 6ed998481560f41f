// Layout: masks, extreme values and special codes, derived from a format's row in the format table.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

// "Compact" magnitude codes below have no sign bit and no padding bits (tf32: bits 30..13).

SAMEBITS_INLINE constexpr bool has_sign(const format_spec& f) {
  return f.special != specials::scale;
}
SAMEBITS_INLINE constexpr bool has_inf(const format_spec& f) { return f.special == specials::ieee; }
SAMEBITS_INLINE constexpr bool has_nan(const format_spec& f) { return f.special != specials::none; }
/// Whether NaN codes carry a sign bit, which nan_policy::preserve_sign can set.
SAMEBITS_INLINE constexpr bool has_signed_nan(const format_spec& f) {
  return f.special == specials::ieee || f.special == specials::fn;
}
SAMEBITS_INLINE constexpr bool has_negative_zero(const format_spec& f) {
  return f.special != specials::fnuz && f.special != specials::scale;
}

/// Bits of exponent and mantissa together.
SAMEBITS_INLINE constexpr int magnitude_bits(const format_spec& f) {
  return f.exponent_bits + f.mantissa_bits;
}
/// Number of sign, exponent and mantissa bits.
SAMEBITS_INLINE constexpr int significant_bits(const format_spec& f) {
  return magnitude_bits(f) + (has_sign(f) ? 1 : 0);
}
SAMEBITS_INLINE constexpr std::uint64_t magnitude_mask(const format_spec& f) {
  return (std::uint64_t{1} << magnitude_bits(f)) - 1;
}
SAMEBITS_INLINE constexpr std::uint64_t mantissa_mask(const format_spec& f) {
  return (std::uint64_t{1} << f.mantissa_bits) - 1;
}
/// The sign bit in compact position; 0 if the format has no sign.
SAMEBITS_INLINE constexpr std::uint64_t sign_mask(const format_spec& f) {
  return has_sign(f) ? std::uint64_t{1} << magnitude_bits(f) : 0;
}
/// Sign, exponent and mantissa bits in stored position.
SAMEBITS_INLINE constexpr std::uint64_t code_mask(const format_spec& f) {
  return (magnitude_mask(f) | sign_mask(f)) << f.padding_bits;
}

/// Exponent of the smallest normal value. In e8m0 this is the exponent of code 01; code 00 is
/// 2^-127.
SAMEBITS_INLINE constexpr int min_exponent(const format_spec& f) { return 1 - f.bias; }

/// Compact code of the largest finite magnitude.
SAMEBITS_INLINE constexpr std::uint64_t max_finite(const format_spec& f) {
  switch (f.special) {
    case specials::ieee: return magnitude_mask(f) - mantissa_mask(f) - 1;  // below Inf
    case specials::fn:
    case specials::scale: return magnitude_mask(f) - 1;  // below the only NaN code
    case specials::none:
    case specials::fnuz: break;
  }
  return magnitude_mask(f);
}
/// Compact code of Inf. Requires has_inf(f).
SAMEBITS_INLINE constexpr std::uint64_t inf_code(const format_spec& f) {
  return magnitude_mask(f) - mantissa_mask(f);
}
/// The canonical NaN in compact position (fnuz: the code of -0). Requires has_nan(f).
SAMEBITS_INLINE constexpr std::uint64_t nan_code(const format_spec& f) {
  return f.special == specials::fnuz ? sign_mask(f) : magnitude_mask(f);
}
/// The code of an infinite result that does not saturate: Inf, else NaN, else max finite.
SAMEBITS_INLINE constexpr std::uint64_t infinite_code(const format_spec& f) {
  return has_inf(f) ? inf_code(f) : has_nan(f) ? nan_code(f) : max_finite(f);
}

namespace checks {
constexpr bool row_is_sound(const format_spec& f) {
  const int used = significant_bits(f) + f.padding_bits;
  return used <= f.storage_bits && (f.storage_bits == 8 || used == f.storage_bits) &&
         f.exponent_bits >= 2 && f.mantissa_bits >= 0 &&
         (f.mantissa_bits > 0 || f.special == specials::scale) &&
         // encode() clamps to max finite or to the next code
         (infinite_code(f) == max_finite(f) || infinite_code(f) == max_finite(f) + 1) &&
         // every format except fp64 is a subset of binary32; decode() relies on this
         (f.storage_bits == 64 ||
          (f.mantissa_bits <= 23 && f.bias <= 127 && min_exponent(f) >= -126)) &&
         // either binary32's exponent range or a far smaller one: encode() treats binary32's
         // subnormals as tiny
         (f.storage_bits == 64 || f.bias == 127 || f.bias <= 16);
}
constexpr bool all_rows_are_sound() {
  for (int i = 0; i < format_count; ++i) {
    if (!row_is_sound(spec_of(format_at(i)))) return false;
  }
  return true;
}
static_assert(all_rows_are_sound(), "a format row is inconsistent");
static_assert(max_finite(spec_of(format_id::fp32)) == 0x7F7FFFFF);
static_assert(max_finite(spec_of(format_id::fp16)) == 0x7BFF);
static_assert(max_finite(spec_of(format_id::bf16)) == 0x7F7F);
static_assert(max_finite(spec_of(format_id::e4m3)) == 0x7E);
static_assert(max_finite(spec_of(format_id::e5m2)) == 0x7B);
static_assert(max_finite(spec_of(format_id::tf32)) << 13 == 0x7F7FE000);
static_assert(max_finite(spec_of(format_id::e3m2)) == 0x1F);
static_assert(max_finite(spec_of(format_id::e2m3)) == 0x1F);
static_assert(max_finite(spec_of(format_id::e2m1)) == 0x07);
static_assert(max_finite(spec_of(format_id::e4m3fnuz)) == 0x7F);
static_assert(max_finite(spec_of(format_id::e8m0)) == 0xFE);
}  // namespace checks

}  // namespace samebits::numerics
