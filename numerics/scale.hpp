// Scale: from a tile's amax to its scale, and from an element to what is cast (contract §7).
#pragma once

#include <cstdint>

#include "numerics/binary32.hpp"
#include "numerics/config.hpp"
#include "numerics/decode.hpp"
#include "numerics/layout.hpp"
#include "numerics/tile.hpp"
#include "numerics/word.hpp"
#include "samebits/format.hpp"
#include "samebits/scaling.hpp"

namespace samebits::numerics {

/// How tiles are scaled. The bounds are binary32 bits of numbers >= 0: eps finite, upper_bound not
/// zero; Inf where there is none. So is what an infinite S becomes.
struct scale_rule {
  scale_math math = scale_math::te;
  nonfinite on_nonfinite = nonfinite::te;
  std::uint32_t eps = 0;
  std::uint32_t upper_bound = binary32::inf;
  std::uint32_t largest_factor = binary32::max_finite;
};

/// The scale of one tile, as binary32 bits; of several tiles in the lanes of a Word.
template <class Word>
struct tile_scales {
  Word stored;  ///< s, the dequantization scale
  Word factor;  ///< what elements are multiplied by, or under scale_math::div divided by
};
using tile_scale = tile_scales<std::uint32_t>;

/// The largest finite value of a format that binary32 contains, as its bits: M of the codes'
/// format.
SAMEBITS_INLINE constexpr std::uint32_t largest_value(const format_spec& f) {
  return decode<std::uint32_t>(f, static_cast<std::uint32_t>(max_finite(f)));
}

// Word: std::uint32_t, or lanes of one tile each (numerics/word.hpp).
// Arithmetic: RN(a * b) and RN(a / b) of binary32 bits, in integers or by proved hardware.

/// max(s, 2^-126): no scale but te's is subnormal, so that r = 1 / s is finite. NaN stays.
template <class Word>
SAMEBITS_INLINE constexpr Word raised(Word s) {
  return max_word(s, Word(binary32::min_normal));
}

/// The power of two at or above t, within 2^-126 .. 2^127, and its reciprocal, which is exact.
/// Inf and NaN give 2^127.
template <class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> power_of_two_scale(Word t) {
  const Word zero = 0u;
  const Word one = 1u;
  const Word largest = 254u;
  const Word above = (t >> 23u) + select((t & Word(0x007FFFFFu)) == zero, zero, one);
  const Word e = min_word(max_word(above, one), largest);
  const Word reciprocal =
      select(e == largest, Word(binary32::min_normal >> 1), (largest - e) << 23u);
  return {e << 23u, reciprocal};
}

/// Whether the factor is M / a of its own account.
SAMEBITS_INLINE constexpr bool divides_by_amax(scale_math math) {
  return math == scale_math::te || math == scale_math::te_pow2 || math == scale_math::dg_tile ||
         math == scale_math::sgl_v2;
}

/// Whether s is a * RN(1 / M).
SAMEBITS_INLINE constexpr bool multiplies_amax(scale_math math) {
  return math == scale_math::dg_cuda || math == scale_math::sgl_v2;
}

/// S of te and te_pow2, and s = 1 / S.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> scale_of_factor(scale_math math, Word quotient,
                                                            Word largest_factor) {
  const Word inf = binary32::inf;
  Word factor = select(quotient == inf, largest_factor, quotient);
  if (math == scale_math::te_pow2) {  // a NaN stays one
    factor = select(factor > inf, factor, factor & Word(0xFF800000u));
  }
  return {Arithmetic::quotient(Word(binary32::one), factor), factor};
}

/// The formulas alone, for an amax that is not zero. M is `largest`.
template <class Arithmetic = binary32::integers, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr tile_scales<Word> scale_of_amax(scale_math math, Word largest, Word a,
                                                          Word largest_factor) {
  const Word one = binary32::one;
  Word inverse = one;
  if (divides_by_amax(math)) inverse = Arithmetic::quotient(largest, a);
  if (math == scale_math::te || math == scale_math::te_pow2) {
    return scale_of_factor<Arithmetic>(math, inverse, largest_factor);
  }
  const Word t = multiplies_amax(math) ? Arithmetic::product(a, Arithmetic::quotient(one, largest))
                                       : Arithmetic::quotient(a, largest);
  if (math == scale_math::pow2) return power_of_two_scale(t);
  const Word s = raised(t);
  if (math == scale_math::div) return {s, s};
  if (!divides_by_amax(math)) return {s, Arithmetic::quotient(one, s)};
  // r is that of s also where s has been raised: 2^126 at most.
  const Word most = 0x7E800000u;
  return {s, select(inverse > Word(binary32::inf), inverse, min_word(inverse, most))};
}

/// The scales of tiles with these amaxes, tile_amax in each lane.
///
/// In this order: non-finite policy, max(a, eps), min(a, upper bound), zero test, formulas. A NaN,
/// which only nonfinite::propagate lets through, passes both bounds.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> scales_of(const format_spec& to, const scale_rule& rule,
                                                      Word amax) {
  const Word one = binary32::one;
  const Word inf = binary32::inf;
  const Word bounded = min_word(max_word(amax, Word(rule.eps)), Word(rule.upper_bound));
  const Word a = select(amax > inf, amax, bounded);
  mask_of<Word> unit = amax == Word(static_cast<std::uint32_t>(nothing_counted));
  if (rule.on_nonfinite == nonfinite::te) unit = unit | (amax == inf);
  unit = unit | (a == Word(0u));
  const tile_scales<Word> s = scale_of_amax<Arithmetic>(
      rule.math, Word(largest_value(to)), select(unit, one, a), Word(rule.largest_factor));
  return {select(unit, one, s.stored), select(unit, one, s.factor)};
}

/// The scale of a tile whose elements have this amax.
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr tile_scale scale_of(const format_spec& to, const scale_rule& rule,
                                              tile_amax amax) {
  return scales_of<Arithmetic>(to, rule, static_cast<std::uint32_t>(amax));
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
