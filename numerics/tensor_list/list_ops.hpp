// The element-wise operations on tensor lists, from codes to a code, as binary32
// operations in a fixed order.
//
// Every binary32 operation rounds to nearest even. The result is rounded once more into the
// tensor's own format (overflow::ieee, canonical NaN). Every NaN is the canonical NaN.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

// Template parameters below:
// - Arithmetic: an Arithmetic policy (numerics/arithmetic/by_definition.hpp) with product() and
//   sum().
// - Word: std::uint32_t, or SIMD lanes. Values are binary32 bits.

/// RN(x * factor).
template <class Arithmetic = by_definition, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr Word scaled_value(Word x, Word factor) {
  return Arithmetic::product(x, factor);
}

/// RN(acc + RN(x * scale)).
template <class Arithmetic = by_definition, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr Word accumulated_value(Word acc, Word x, Word scale) {
  return Arithmetic::sum(acc, Arithmetic::product(x, scale));
}

/// RN(RN(a * x) + RN(b * y)).
template <class Arithmetic = by_definition, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr Word combined_value(Word a, Word x, Word b, Word y) {
  return Arithmetic::sum(Arithmetic::product(a, x), Arithmetic::product(b, y));
}

/// Rounds a value to a code of a tensor's format.
SAMEBITS_INLINE constexpr std::uint32_t rounded_code(const format_spec& to, std::uint32_t value) {
  return static_cast<std::uint32_t>(encode<std::uint32_t>(to, cast_rule{}, value, 0).code);
}

// Codes: decode, compute, round to a code.

/// The code of scaled_value() of a code.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t scaled_code(const format_spec& f, std::uint32_t code,
                                                    std::uint32_t factor) {
  return rounded_code(f, scaled_value<Arithmetic>(decode<std::uint32_t>(f, code), factor));
}

/// The code of accumulated_value() of codes; `scale` is binary32 bits.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t accumulated_code(const format_spec& acc_format,
                                                         std::uint32_t acc,
                                                         const format_spec& x_format,
                                                         std::uint32_t x, std::uint32_t scale) {
  return rounded_code(acc_format,
                      accumulated_value<Arithmetic>(decode<std::uint32_t>(acc_format, acc),
                                                    decode<std::uint32_t>(x_format, x), scale));
}

/// The code of combined_value() of codes; `a` and `b` are binary32 bits.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t combined_code(const format_spec& out, std::uint32_t a,
                                                      const format_spec& x_format, std::uint32_t x,
                                                      std::uint32_t b, const format_spec& y_format,
                                                      std::uint32_t y) {
  return rounded_code(out, combined_value<Arithmetic>(a, decode<std::uint32_t>(x_format, x), b,
                                                      decode<std::uint32_t>(y_format, y)));
}

/// Partial statistics of scaling the elements of a chunk.
struct scale_statistics {
  std::uint32_t amax;        ///< amax before scaling, binary32 bits (contract §6)
  std::uint16_t nonfinite;   ///< elements that were Inf or NaN before scaling
  std::uint16_t overflowed;  ///< elements that were finite before scaling but not after
};
static_assert(sizeof(scale_statistics) == 8);

/// Adds one element of format f to a chunk's statistics; given are its codes before and after
/// scaling.
SAMEBITS_INLINE constexpr void count_scaled(const format_spec& f, scale_statistics& statistics,
                                            std::uint32_t before, std::uint32_t after) {
  const std::uint32_t x = binary32::amax_bits(decode<std::uint32_t>(f, before));
  const std::uint32_t y = binary32::magnitude(decode<std::uint32_t>(f, after));
  if (statistics.amax < x) statistics.amax = x;
  if (x >= binary32::inf) {
    ++statistics.nonfinite;
  } else if (y >= binary32::inf) {
    ++statistics.overflowed;
  }
}

}  // namespace samebits::numerics
