// Scale: from a tile's amax to its scale, and from an element to what is cast (contract §7).
#pragma once

#include <cstdint>

#include "numerics/binary32.hpp"
#include "numerics/config.hpp"
#include "numerics/decode.hpp"
#include "numerics/layout.hpp"
#include "numerics/tile.hpp"
#include "samebits/format.hpp"
#include "samebits/scaling.hpp"

namespace samebits::numerics {

/// How tiles are scaled. The bounds are binary32 bits of numbers >= 0: eps finite, upper_bound not
/// zero; Inf where there is none.
struct scale_rule {
  scale_math math = scale_math::te;
  nonfinite on_nonfinite = nonfinite::te;
  std::uint32_t eps = 0;
  std::uint32_t upper_bound = binary32::inf;
};

/// The scale of one tile, as binary32 bits.
struct tile_scale {
  std::uint32_t stored;  ///< s, the dequantization scale
  std::uint32_t factor;  ///< what elements are multiplied by, or under scale_math::div divided by
};

/// M: the largest finite value of a format of 8 bits, as binary32 bits.
SAMEBITS_INLINE constexpr std::uint32_t largest_value(const format_spec& f) {
  return decode<std::uint32_t>(f, static_cast<std::uint32_t>(max_finite(f)));
}

/// max(s, 2^-126): no scale but te's is subnormal, so that r = 1 / s is finite. NaN stays.
SAMEBITS_INLINE constexpr std::uint32_t raised(std::uint32_t s) {
  return s < binary32::min_normal ? binary32::min_normal : s;
}

/// The power of two at or above t, within 2^-126 .. 2^127, and its reciprocal, which is exact.
/// Inf and NaN give 2^127.
SAMEBITS_INLINE constexpr tile_scale power_of_two_scale(std::uint32_t t) {
  const std::uint32_t above = (t >> 23) + ((t & 0x007FFFFFu) != 0 ? 1 : 0);
  const std::uint32_t e = above < 1 ? 1 : above > 254 ? 254 : above;
  const std::uint32_t reciprocal = e == 254 ? binary32::min_normal >> 1 : (254 - e) << 23;
  return {e << 23, reciprocal};
}

// Arithmetic: RN(a * b) and RN(a / b) of binary32 bits, in integers or by proved hardware.

/// The formulas alone, for an amax that is not zero.
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr tile_scale scale_of_amax(scale_math math, std::uint32_t largest,
                                                   std::uint32_t a) {
  if (math == scale_math::te) {
    const std::uint32_t quotient = Arithmetic::quotient(largest, a);
    const std::uint32_t factor = quotient == binary32::inf ? binary32::max_finite : quotient;
    return {Arithmetic::quotient(binary32::one, factor), factor};
  }
  const std::uint32_t t = Arithmetic::quotient(a, largest);
  if (math == scale_math::pow2) return power_of_two_scale(t);
  const std::uint32_t s = raised(t);
  return {s, math == scale_math::div ? s : Arithmetic::quotient(binary32::one, s)};
}

/// The scale of a tile whose elements have this amax.
///
/// In this order: non-finite policy, max(a, eps), min(a, upper bound), zero test, formulas. A NaN,
/// which only nonfinite::propagate lets through, passes both bounds.
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr tile_scale scale_of(const format_spec& to, const scale_rule& rule,
                                              tile_amax amax) {
  constexpr tile_scale unit = {binary32::one, binary32::one};
  if (amax == nothing_counted) return unit;
  auto a = static_cast<std::uint32_t>(amax);
  if (rule.on_nonfinite == nonfinite::te && a == binary32::inf) return unit;
  if (!binary32::is_nan(a)) {
    a = a < rule.eps ? rule.eps : a;
    a = a > rule.upper_bound ? rule.upper_bound : a;
  }
  if (a == 0) return unit;
  return scale_of_amax<Arithmetic>(rule.math, largest_value(to), a);
}

/// y: the scaled element, which is then cast. A NaN becomes the canonical one.
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr std::uint32_t scaled(scale_math math, const tile_scale& scale,
                                               std::uint32_t x) {
  return math == scale_math::div ? Arithmetic::quotient(x, scale.factor)
                                 : Arithmetic::product(x, scale.factor);
}

/// The value of a code under its scale: RN(value * s).
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr std::uint32_t rescaled(const format_spec& from, std::uint32_t code,
                                                 std::uint32_t stored) {
  return Arithmetic::product(decode<std::uint32_t>(from, code), stored);
}

}  // namespace samebits::numerics
