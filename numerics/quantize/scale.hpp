// Scale: from a tile's amax to its scale, and from an element to what is cast (contract §7).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::numerics {

/// How tiles are scaled. The bounds are binary32 bits of numbers >= 0: eps finite, upper_bound not
/// zero; Inf where there is none. So is what an infinite S becomes.
struct scale_rule {
  scale_math math = scale_math::te;
  nonfinite on_nonfinite = nonfinite::te;
  std::uint32_t eps = 0;
  std::uint32_t upper_bound = binary32::inf;
  std::uint32_t largest_factor = binary32::max_finite;
  std::uint32_t stored_of_zeros = binary32::one;  ///< of a tile whose amax is 0: 1; in e8m0 2^-127
};

/// Whether no element of a tile is beyond M once scaled, but for roundings of the factor: no code
/// saturates.
SAMEBITS_INLINE constexpr bool bounds_elements(scale_math math) {
  return math != scale_math::mx_floor && math != scale_math::mx_even;
}

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

// Word: std::uint32_t, or lanes of one tile each (numerics/bits/word.hpp).
// Arithmetic: RN(a * b) and RN(a / b) of binary32 bits, in integers or by proved hardware.

/// max(s, 2^-126): no scale but te's is subnormal, so that r = 1 / s is finite. NaN stays.
template <class Word>
SAMEBITS_INLINE constexpr Word raised(Word s) {
  return max_word(s, Word(binary32::min_normal));
}

/// 2^(e - 127) for an exponent field e in 0 .. 254, where 0 is 2^-127.
template <class Word>
SAMEBITS_INLINE constexpr Word power_of_two(Word e) {
  return select(e == Word(0u), Word(binary32::min_normal >> 1), e << 23u);
}

/// The same as a scale, with its reciprocal, which is exact.
template <class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> power_of_two_scale(Word e) {
  return {power_of_two(e), power_of_two(Word(254u) - e)};
}

/// t's exponent field, and one more if t is greater than the power of two there.
template <class Word>
SAMEBITS_INLINE constexpr Word field_above(Word t) {
  const Word zero = 0u;
  return (t >> 23u) + select((t & Word(0x007FFFFFu)) == zero, zero, Word(1u));
}

/// The exponent field of an mx maths' scale, 0 .. 254. Inf and NaN give 254.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word mx_field(scale_math math, const format_spec& to, Word a) {
  const Word zero = 0u;
  const Word most = 254u;
  const std::uint32_t largest = largest_value(to);
  if (math == scale_math::mx_rceil) {
    const Word t = Arithmetic::quotient(a, Word(largest));
    // Below 2^-126 the power of two is 2^-127: half of the subnormals' range.
    const Word least = select(t > Word(binary32::min_normal >> 1), Word(1u), zero);
    return min_word(select(t < Word(binary32::min_normal), least, field_above(t)), most);
  }
  const std::uint32_t half = 1u << (22 - to.mantissa_bits);  // of the codes' last place
  Word field = a >> 23u;
  if (math == scale_math::mx_ceil) field = field_above(a);
  if (math == scale_math::mx_even) field = (a + Word(half)) >> 23u;
  const Word emax = (largest >> 23) - 127u;
  field = max_word(field, emax) - emax;
  return select(a < Word(binary32::inf), field, most);
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

/// The formulas alone, for an amax that is not zero.
template <class Arithmetic = binary32::integers, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr tile_scales<Word> scale_of_amax(scale_math math, const format_spec& to,
                                                          Word a, Word largest_factor) {
  if (is_mx(math)) return power_of_two_scale(mx_field<Arithmetic>(math, to, a));
  const Word one = binary32::one;
  const Word largest = largest_value(to);
  Word inverse = one;
  if (divides_by_amax(math)) inverse = Arithmetic::quotient(largest, a);
  if (math == scale_math::te || math == scale_math::te_pow2) {
    return scale_of_factor<Arithmetic>(math, inverse, largest_factor);
  }
  const Word t = multiplies_amax(math) ? Arithmetic::product(a, Arithmetic::quotient(one, largest))
                                       : Arithmetic::quotient(a, largest);
  if (math == scale_math::pow2) {
    return power_of_two_scale(min_word(max_word(field_above(t), Word(1u)), Word(254u)));
  }
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
  const mask_of<Word> zeros = a == Word(0u);
  tile_scales<Word> s = scale_of_amax<Arithmetic>(rule.math, to, select(unit | zeros, one, a),
                                                  Word(rule.largest_factor));
  if (is_mx(rule.math) && rule.on_nonfinite == nonfinite::propagate) {
    const mask_of<Word> poisoned = a > Word(binary32::max_finite);
    s = {select(poisoned, Word(binary32::nan), s.stored),
         select(poisoned, Word(binary32::nan), s.factor)};
  }
  s.stored = select(zeros, Word(rule.stored_of_zeros), s.stored);
  return {select(unit, one, s.stored), select(unit | zeros, one, s.factor)};
}

/// The scale of a tile whose elements have this amax.
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr tile_scale scale_of(const format_spec& to, const scale_rule& rule,
                                              tile_amax amax) {
  return scales_of<Arithmetic>(to, rule, static_cast<std::uint32_t>(amax));
}

/// A scale that is given as S.
template <class Arithmetic = binary32::integers>
SAMEBITS_INLINE constexpr tile_scale scale_of_multiplier(std::uint32_t multiplier) {
  return {Arithmetic::quotient(binary32::one, multiplier), multiplier};
}

/// s as an e8m0 code, which it is: a power of two in 2^-127 .. 2^127, or FF for Inf and NaN.
SAMEBITS_INLINE constexpr std::uint32_t e8m0_of(std::uint32_t stored) { return stored >> 23; }

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
