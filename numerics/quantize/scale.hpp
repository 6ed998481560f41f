// Scale: computes a tile's scale from its amax, and the scaled element that is cast (contract §7).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/quantize/tile.hpp"
#include "numerics/quantize/two_levels.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::numerics {

/// How tiles are scaled. The bounds are binary32 bits of numbers >= 0; Inf means no bound. eps is
/// finite and upper_bound is not zero.
struct scale_settings {
  scale_rule rule = scale_rule::te;
  samebits::nonfinite nonfinite = samebits::nonfinite::te;
  std::uint32_t eps = 0;
  std::uint32_t upper_bound = binary32::inf;
  std::uint32_t largest_factor = binary32::max_finite;  ///< replaces an infinite S
  /// The dequantization scale of a tile whose amax is 0: 1; in e8m0 2^-127.
  std::uint32_t scale_of_zeros = binary32::one;
  tensor_level tensor = {};  ///< read by rules with two levels
};

/// Whether scaled elements never exceed M, except by the rounding of the factor. Then no code
/// saturates.
SAMEBITS_INLINE constexpr bool bounds_elements(scale_rule rule) {
  return rule != scale_rule::mx_floor && rule != scale_rule::mx_even && !has_two_levels(rule);
}

// Template parameters below:
// - Word: std::uint32_t, or SIMD lanes with one tile each (numerics/bits/word.hpp).
// - Arithmetic: an Arithmetic policy (numerics/arithmetic/by_definition.hpp) with product() and
//   quotient(). Hardware policies must have passed the self-test.

/// max(s, 2^-126). Only te has subnormal scales; with s >= 2^-126 the factor 1 / s is finite. NaN
/// stays NaN.
template <class Word>
SAMEBITS_INLINE constexpr Word raised(Word s) {
  return max_word(s, Word(binary32::min_normal));
}

/// 2^(e - 127) as binary32 bits, for an exponent field e in 0 .. 254. Field 0 gives 2^-127.
template <class Word>
SAMEBITS_INLINE constexpr Word power_of_two(Word e) {
  return select(e == Word(0u), Word(binary32::min_normal >> 1), e << 23u);
}

/// The scale 2^(e - 127) with its exact reciprocal.
template <class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> power_of_two_scale(Word e) {
  return {power_of_two(e), power_of_two(Word(254u) - e)};
}

/// The exponent field of t, plus one if t is not a power of two.
template <class Word>
SAMEBITS_INLINE constexpr Word field_above(Word t) {
  const Word zero = 0u;
  return (t >> 23u) + select((t & Word(0x007FFFFFu)) == zero, zero, Word(1u));
}

/// The exponent field, 0 .. 254, of the scale of an mx scale rule. Inf and NaN give 254.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word mx_field(scale_rule rule, const format_spec& to, Word a) {
  const Word zero = 0u;
  const Word maximum = 254u;
  const std::uint32_t largest = largest_value(to);
  if (rule == scale_rule::mx_rceil) {
    const Word t = Arithmetic::quotient(a, Word(largest));
    // A scale t <= 2^-127 becomes 2^-127; any other t below 2^-126 becomes 2^-126.
    const Word minimum = select(t > Word(binary32::min_normal >> 1), Word(1u), zero);
    return min_word(select(t < Word(binary32::min_normal), minimum, field_above(t)), maximum);
  }
  const std::uint32_t half = 1u << (22 - to.mantissa_bits);  // half a unit of the codes' last place
  Word field = a >> 23u;
  if (rule == scale_rule::mx_ceil) field = field_above(a);
  if (rule == scale_rule::mx_even) field = (a + Word(half)) >> 23u;
  const Word emax = (largest >> 23) - 127u;
  field = max_word(field, emax) - emax;
  return select(a < Word(binary32::inf), field, maximum);
}

/// Whether the factor is computed as M / a, not as the reciprocal of s.
SAMEBITS_INLINE constexpr bool divides_by_amax(scale_rule rule) {
  return rule == scale_rule::te || rule == scale_rule::te_pow2 || rule == scale_rule::dg_tile ||
         rule == scale_rule::sgl_v2;
}

/// Whether s is computed as a * RN(1 / M).
SAMEBITS_INLINE constexpr bool multiplies_amax(scale_rule rule) {
  return rule == scale_rule::dg_cuda || rule == scale_rule::sgl_v2;
}

/// The inverse scale S of te and te_pow2, and the dequantization scale s = 1 / S.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> scale_of_factor(scale_rule rule, Word quotient,
                                                            Word largest_factor) {
  const Word inf = binary32::inf;
  Word factor = select(quotient == inf, largest_factor, quotient);
  if (rule == scale_rule::te_pow2) {  // a NaN stays a NaN
    factor = select(factor > inf, factor, factor & Word(0xFF800000u));
  }
  return {Arithmetic::quotient(Word(binary32::one), factor), factor};
}

/// The formulas of the scale rules, for an amax that is not zero.
template <class Arithmetic = by_definition, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr tile_scales<Word> scale_of_amax(scale_rule rule, const format_spec& to,
                                                          Word a, Word largest_factor) {
  if (is_mx(rule)) return power_of_two_scale(mx_field<Arithmetic>(rule, to, a));
  const Word one = binary32::one;
  const Word largest = largest_value(to);
  Word inverse = one;
  if (divides_by_amax(rule)) inverse = Arithmetic::quotient(largest, a);
  if (rule == scale_rule::te || rule == scale_rule::te_pow2) {
    return scale_of_factor<Arithmetic>(rule, inverse, largest_factor);
  }
  const Word t = multiplies_amax(rule) ? Arithmetic::product(a, Arithmetic::quotient(one, largest))
                                       : Arithmetic::quotient(a, largest);
  if (rule == scale_rule::pow2) {
    return power_of_two_scale(min_word(max_word(field_above(t), Word(1u)), Word(254u)));
  }
  const Word s = raised(t);
  if (rule == scale_rule::div) return {s, s};
  if (!divides_by_amax(rule)) return {s, Arithmetic::quotient(one, s)};
  // If s was raised to 2^-126, r is the reciprocal of the raised s: at most 2^126.
  const Word maximum = 0x7E800000u;
  return {s, select(inverse > Word(binary32::inf), inverse, min_word(inverse, maximum))};
}

/// min(max(a, eps), upper bound); a NaN passes.
template <class Word>
SAMEBITS_INLINE constexpr Word bounded_amax(const scale_settings& settings, Word a) {
  const Word bounded = min_word(max_word(a, Word(settings.eps)), Word(settings.upper_bound));
  return select(a > Word(binary32::inf), a, bounded);
}

/// The scales of several tiles under a rule with one level. Each lane of `amax` holds one tile_amax.
///
/// Applies in this order: non-finite policy, max(a, eps), min(a, upper bound), zero test, formulas.
/// A NaN passes both bounds; only nonfinite::propagate lets a NaN reach them.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> scales_of(const format_spec& to,
                                                      const scale_settings& settings, Word amax) {
  const Word one = binary32::one;
  const Word inf = binary32::inf;
  const Word a = bounded_amax(settings, amax);
  mask_of<Word> unit = amax == Word(static_cast<std::uint32_t>(no_amax));
  if (settings.nonfinite == nonfinite::te) unit = unit | (amax == inf);
  const mask_of<Word> zeros = a == Word(0u);
  tile_scales<Word> s = scale_of_amax<Arithmetic>(settings.rule, to, select(unit | zeros, one, a),
                                                  Word(settings.largest_factor));
  if (is_mx(settings.rule) && settings.nonfinite == nonfinite::propagate) {
    const mask_of<Word> poisoned = a > Word(binary32::max_finite);
    s = {select(poisoned, Word(binary32::nan), s.dequantization_scale),
         select(poisoned, Word(binary32::nan), s.factor)};
  }
  s.dequantization_scale = select(zeros, Word(settings.scale_of_zeros), s.dequantization_scale);
  return {select(unit, one, s.dequantization_scale), select(unit | zeros, one, s.factor)};
}

/// The scale of one tile with this amax.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr tile_scale scale_of(const format_spec& to, const scale_settings& settings,
                                              tile_amax amax) {
  return scales_of<Arithmetic>(to, settings, static_cast<std::uint32_t>(amax));
}

/// The scales of several tiles; under four over six those that map a to M. Rules with two levels are
/// apart, so that kernels without them stay small.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> any_scales_of(const format_spec& to,
                                                          const scale_settings& settings,
                                                          Word amax) {
  if (!has_two_levels(settings.rule)) return scales_of<Arithmetic>(to, settings, amax);
  const Word one = binary32::one;
  const Word inf = binary32::inf;
  const Word none = static_cast<std::uint32_t>(no_amax);
  const Word a = bounded_amax(settings, select(amax == none, Word(0u), amax));
  const tile_scales<Word> s = two_level_scale<Arithmetic>(settings.rule, to, settings.tensor, a);
  if (settings.nonfinite != nonfinite::te) return s;
  return {select(amax == inf, one, s.dequantization_scale), select(amax == inf, one, s.factor)};
}

/// any_scales_of() of one tile with this amax.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr tile_scale any_scale_of(const format_spec& to,
                                                  const scale_settings& settings, tile_amax amax) {
  return any_scales_of<Arithmetic>(to, settings, static_cast<std::uint32_t>(amax));
}

/// The scale of a tile whose inverse scale S is given.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr tile_scale scale_of_inverse(std::uint32_t inverse_scale) {
  return {Arithmetic::quotient(binary32::one, inverse_scale), inverse_scale};
}

/// The e8m0 code of s. The scale s is a power of two in 2^-127 .. 2^127; Inf and NaN give FF.
SAMEBITS_INLINE constexpr std::uint32_t e8m0_of(std::uint32_t dequantization_scale) {
  return dequantization_scale >> 23;
}

/// The scaled element y, which is then cast. A NaN becomes the canonical NaN.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t scaled(scale_rule rule, const tile_scale& scale,
                                               std::uint32_t x) {
  return rule == scale_rule::div ? Arithmetic::quotient(x, scale.factor)
                                 : Arithmetic::product(x, scale.factor);
}

/// The e4m3 code of s, a number of e4m3 that is not negative; NaN gives 7F.
SAMEBITS_INLINE constexpr std::uint32_t e4m3_of(std::uint32_t dequantization_scale) {
  const std::uint32_t s = dequantization_scale;
  constexpr std::uint32_t rebias = (127 - 7) << 3;
  if (s >= smallest_normal_e4m3) return min_word((s >> 20) - rebias, 0x7Fu);
  if (s == 0) return 0;
  // below 2^-6: an integer times 2^-9
  return ((s & 0x007FFFFFu) | 0x00800000u) >> (23 + 127 - 9 - (s >> 23));
}

/// The code of s in a format of scales: fp32, e8m0 or e4m3.
SAMEBITS_INLINE constexpr std::uint32_t scale_code(format_id format,
                                                   std::uint32_t dequantization_scale) {
  if (format == format_id::e8m0) return e8m0_of(dequantization_scale);
  if (format == format_id::e4m3) return e4m3_of(dequantization_scale);
  return dequantization_scale;
}

/// The number by which the values of codes are multiplied: s, or under a rule with two levels the
/// product of s and the tensor's scale.
template <class Arithmetic = by_definition, class Word = std::uint32_t>
SAMEBITS_INLINE constexpr Word full_scale(scale_rule rule, const tensor_level& tensor, Word s) {
  return has_two_levels(rule) ? two_level_product<Arithmetic>(rule, tensor, s) : s;
}

/// The dequantized value of a code: RN(value * full_scale()).
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t rescaled(const format_spec& from, std::uint32_t code,
                                                 std::uint32_t dequantization_scale) {
  return Arithmetic::product(decode<std::uint32_t>(from, code), dequantization_scale);
}

}  // namespace samebits::numerics
