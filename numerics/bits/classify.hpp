// Classify: splits codes into sign and magnitude, compares them and finds their neighbours. Works
// on bits only; rounds nothing.
#pragma once

#include <cstdint>

#include "numerics/bits/layout.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// Sign and magnitude of a stored code. The magnitude has no sign bit and no padding bits.
struct code_parts {
  bool negative;
  std::uint64_t magnitude;
  bool is_nan;
};

/// Splits a stored code; bits above the format's width are ignored.
SAMEBITS_INLINE constexpr code_parts split(const format_spec& f, std::uint64_t code) {
  const std::uint64_t compact = (code & code_mask(f)) >> f.padding_bits;
  const std::uint64_t magnitude = compact & magnitude_mask(f);
  const bool negative = compact != magnitude;
  if (f.special == specials::fnuz && compact == nan_code(f)) return {false, 0, true};
  const std::uint64_t largest = has_inf(f) ? inf_code(f) : max_finite(f);
  return {negative, magnitude, magnitude > largest};
}

/// Builds a stored code; the inverse of split(). A sign is dropped on a zero in a format without
/// -0.
SAMEBITS_INLINE constexpr std::uint64_t join(const format_spec& f, bool negative,
                                             std::uint64_t magnitude) {
  const bool signed_zero = magnitude != 0 || has_negative_zero(f);
  return (magnitude | (negative && signed_zero ? sign_mask(f) : 0)) << f.padding_bits;
}

/// The canonical NaN as a stored code; max finite in a format without NaN (contract §2).
SAMEBITS_INLINE constexpr std::uint64_t canonical_nan(const format_spec& f) {
  return (has_nan(f) ? nan_code(f) : max_finite(f)) << f.padding_bits;
}

/// Returns the code with its sign bit flipped; the sign bit of a NaN flips too. The fnuz codes 00
/// and 80 and all e8m0 codes stay unchanged (contract §2).
SAMEBITS_INLINE constexpr std::uint64_t negate(const format_spec& f, std::uint64_t code) {
  if (f.special == specials::fnuz && split(f, code).magnitude == 0) return code & code_mask(f);
  return (code & code_mask(f)) ^ (sign_mask(f) << f.padding_bits);
}

/// Compares two codes of one format as numbers: NaN is unordered, -0 equals +0.
struct comparison {
  bool less, equal;
};
SAMEBITS_INLINE constexpr comparison compare(const format_spec& f, std::uint64_t a,
                                             std::uint64_t b) {
  const code_parts x = split(f, a);
  const code_parts y = split(f, b);
  if (x.is_nan || y.is_nan) return {false, false};
  const auto key = [](const code_parts& p) {
    const auto magnitude = static_cast<std::int64_t>(p.magnitude);
    return p.negative ? -magnitude : magnitude;
  };
  return {key(x) < key(y), key(x) == key(y)};
}

/// The smallest value above the value of `code` (IEEE 754-2019 nextUp). Contract §5 covers formats
/// without Inf or NaN.
/// ±0 gives the smallest positive subnormal, and the largest negative subnormal gives -0. The value
/// above max finite is Inf; without Inf it is NaN; without NaN it is max finite again. A NaN gives
/// the canonical NaN. All e8m0 values are positive.
SAMEBITS_INLINE constexpr std::uint64_t next_up(const format_spec& f, std::uint64_t code) {
  const code_parts p = split(f, code);
  if (p.is_nan) return canonical_nan(f);
  const bool zero = p.magnitude == 0 && f.special != specials::scale;
  if (p.negative && !zero) return join(f, true, p.magnitude - 1);
  const std::uint64_t max = max_finite(f);
  if (p.magnitude < max) return join(f, false, p.magnitude + 1);
  if (has_inf(f)) return join(f, false, inf_code(f));
  return canonical_nan(f);
}

/// The largest value below the value of `code`; mirrors next_up(). The smallest e8m0 value, 2^-127,
/// gives itself.
SAMEBITS_INLINE constexpr std::uint64_t next_down(const format_spec& f, std::uint64_t code) {
  const code_parts p = split(f, code);
  if (p.is_nan) return canonical_nan(f);
  if (f.special == specials::scale) return p.magnitude == 0 ? 0 : p.magnitude - 1;
  if (!p.negative && p.magnitude != 0) return join(f, false, p.magnitude - 1);
  const std::uint64_t max = max_finite(f);
  if (p.magnitude < max) return join(f, true, p.magnitude + 1);
  if (has_inf(f)) return join(f, true, inf_code(f));
  return has_nan(f) ? canonical_nan(f) : join(f, true, max);
}

}  // namespace samebits::numerics
