// Two levels: scale rules in which all tiles share a scale of the tensor, and each tile has a scale in
// e4m3 (samebits/core/scaling.hpp has the table of formulas).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::numerics {

inline constexpr std::uint32_t largest_e4m3 = 0x43E00000u;          ///< 448
inline constexpr std::uint32_t smallest_normal_e4m3 = 0x3C800000u;  ///< 2^-6
inline constexpr std::uint32_t four_over_six_bound = 0x43800000u;   ///< 256

/// The numbers of a tensor that the scales of its tiles need, as binary32 bits.
struct tensor_level {
  std::uint32_t stored = binary32::one;   ///< the tensor's scale: A, p or S
  std::uint32_t encode = binary32::one;   ///< S; nvfp4_torchao: 1 / p
  std::uint32_t decode = binary32::one;   ///< 1 / S; nvfp4_torchao: p
  std::uint32_t product = binary32::one;  ///< nvfp4_te: S * (1 / M)
  std::uint32_t restore = binary32::one;  ///< 1 / (448 * M), or 1 / (256 * M)
};

/// The largest scale of a tile times M: 448 * M, for four over six 256 * M.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t tensor_range(scale_rule rule, const format_spec& to) {
  return Arithmetic::product(is_four_over_six(rule) ? four_over_six_bound : largest_e4m3,
                             largest_value(to));
}

/// The tensor's scale from its amax. An amax of zero gives nvfp4_vllm 1; its scale is the caller's.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t tensor_scale_of(scale_rule rule, const format_spec& to,
                                                    tile_amax amax) {
  const std::uint32_t a = amax == no_amax ? 0u : static_cast<std::uint32_t>(amax);
  const std::uint32_t range = tensor_range<Arithmetic>(rule, to);
  if (rule == scale_rule::nvfp4_torchao) return Arithmetic::quotient(a, range);
  if (rule == scale_rule::nvfp4_vllm)
    return a == 0 ? binary32::one : Arithmetic::quotient(range, a);
  return a;
}

/// The numbers of a tensor from its scale.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr tensor_level tensor_level_of(scale_rule rule, const format_spec& to,
                                                   std::uint32_t stored) {
  const std::uint32_t one = binary32::one;
  if (rule == scale_rule::nvfp4_torchao) {
    return {stored, Arithmetic::quotient(one, stored), stored, one, one};
  }
  if (rule == scale_rule::nvfp4_vllm) {
    return {stored, stored, hopper::rcp_approx_ftz(stored), one, one};
  }
  const std::uint32_t range = tensor_range<Arithmetic>(rule, to);
  // fmin() of CUDA drops a NaN
  std::uint32_t s = min_word(Arithmetic::quotient(range, stored), binary32::max_finite);
  if (binary32::is_zero(stored) || s == 0) s = one;
  return {stored, s, Arithmetic::quotient(one, s),
          Arithmetic::product(s, Arithmetic::quotient(one, largest_value(to))),
          Arithmetic::quotient(one, range)};
}

/// The e4m3 code nearest to a number t >= 0, at most that of 448.
template <class Word>
SAMEBITS_INLINE constexpr Word e4m3_code(Word t) {
  const cast_rule rule{rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  return encode<Word>(spec_of(format_id::e4m3), rule, t, Word(0u)).code;
}

/// The e4m3 number nearest to a number t >= 0, at most 448, as binary32 bits.
template <class Word>
SAMEBITS_INLINE constexpr Word e4m3_value(Word t) {
  return decode<Word>(spec_of(format_id::e4m3), e4m3_code(t));
}

/// The scale s of a tile, with the factor of TransformerEngine: r = 1 / (s * (1 / S)), at most FLT_MAX.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> with_factor(const tensor_level& tensor, Word s) {
  const Word one = binary32::one;
  const Word r = Arithmetic::quotient(one, Arithmetic::product(s, Word(tensor.decode)));
  return {s, min_word(r, Word(binary32::max_finite))};
}

/// b of nvfp4_static6 and four over six: (a / M) * S, at most FLT_MAX.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word base_scale(const format_spec& to, const tensor_level& tensor,
                                          Word a) {
  const Word t =
      Arithmetic::product(Arithmetic::quotient(a, Word(largest_value(to))), Word(tensor.encode));
  return min_word(t, Word(binary32::max_finite));
}

/// s and r of nvfp4_torchao.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> torchao_scale(const format_spec& to,
                                                          const tensor_level& tensor, Word a) {
  const Word t =
      Arithmetic::quotient(Arithmetic::quotient(a, Word(largest_value(to))), Word(tensor.stored));
  const Word s = e4m3_value(max_word(t, Word(smallest_normal_e4m3)));  // a NaN stays
  return {s, Arithmetic::quotient(Word(tensor.encode), s)};
}

/// 1 / t by the function unit.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word reciprocal_by_unit(Word t) {
  if constexpr (sizeof(Word) == sizeof(std::uint32_t)) {
    return hopper::rcp_approx_ftz(t);
  } else {
    return Arithmetic::reciprocal_by_unit(t);
  }
}

/// s and r of nvfp4_vllm.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> vllm_scale(const format_spec& to,
                                                       const tensor_level& tensor, Word a) {
  const Word one = binary32::one, zero = 0u;
  const Word inverse = Arithmetic::quotient(one, Word(largest_value(to)));
  const Word s =
      e4m3_value(Arithmetic::product(Word(tensor.encode), Arithmetic::product(a, inverse)));
  const Word r = reciprocal_by_unit<Arithmetic>(Arithmetic::product(s, Word(tensor.decode)));
  return {s, select(s == zero, zero, r)};
}

/// The scale of a tile under a rule with two levels; under four over six, the one that maps a to M.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr tile_scales<Word> two_level_scale(scale_rule rule, const format_spec& to,
                                                            const tensor_level& tensor, Word a) {
  if (rule == scale_rule::nvfp4_torchao) return torchao_scale<Arithmetic>(to, tensor, a);
  if (rule == scale_rule::nvfp4_vllm) return vllm_scale<Arithmetic>(to, tensor, a);
  Word t = base_scale<Arithmetic>(to, tensor, a);
  if (rule == scale_rule::nvfp4_te) {
    t = min_word(Arithmetic::product(a, Word(tensor.product)), Word(binary32::max_finite));
  }
  tile_scales<Word> scale = with_factor<Arithmetic>(tensor, e4m3_value(t));
  if (rule == scale_rule::nvfp4_static6) {
    const Word zero = 0u;
    scale.factor = select(scale.dequantization_scale == zero, zero, scale.factor);
  }
  return scale;
}

/// The dequantization scale d of a tile: s and the tensor's scale together.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word two_level_product(scale_rule rule, const tensor_level& tensor,
                                                 Word s) {
  if (rule == scale_rule::nvfp4_vllm) return Arithmetic::quotient(s, Word(tensor.stored));
  const Word product = Arithmetic::product(s, Word(tensor.stored));
  if (rule == scale_rule::nvfp4_torchao) return product;
  return Arithmetic::product(product, Word(tensor.restore));
}

}  // namespace samebits::numerics
