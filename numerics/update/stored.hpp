// Stored: codes of weights and states to binary32 values and back (contract §12, "Weights" and
// "Formats").
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/update/dynamic_codes.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/optimizer.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// Random bits of stochastic formats.
inline constexpr int update_random_bits = 16;

/// The format of the codes. Requires !is_dynamic(f): dynamic codes are indices of a table.
SAMEBITS_INLINE constexpr format_id codes_format(stored_format f) {
  switch (f) {
    case stored_format::bf16_nearest:
    case stored_format::bf16_stochastic: return format_id::bf16;
    case stored_format::fp16_nearest:
    case stored_format::fp16_stochastic:
    case stored_format::fp16_scaled: return format_id::fp16;
    case stored_format::e4m3_scaled:
    case stored_format::e4m3_tensor: return format_id::e4m3;
    case stored_format::e5m2_scaled:
    case stored_format::e5m2_tensor: return format_id::e5m2;
    default: return format_id::fp32;
  }
}

/// How values are rounded to codes.
SAMEBITS_INLINE constexpr cast_rule stored_rule(stored_format f) {
  cast_rule rule;
  if (is_stochastic(f)) rule.rounding = rounding::stochastic;
  if (f == stored_format::e4m3_scaled || f == stored_format::e5m2_scaled) {
    rule.overflow = overflow::saturate;
  }
  return rule;
}

/// The scale of a block as binary32 bits, and the factor of its values before they are rounded.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr tile_scale block_scale(stored_format f, std::uint32_t amax) {
  if (f == stored_format::fp16_scaled) {
    if (amax == 0) return {binary32::one, binary32::one};
    // The largest value lies in [2^14, 2^15) after scaling, or below, if the scale is 2^-126. Inf
    // and NaN have the field 255.
    const std::uint32_t field = amax >> 23;
    const std::uint32_t e = field > 15 ? field - 14 : 1;
    return power_of_two_scale(e);
  }
  if (is_dynamic(f)) {
    const std::uint32_t s = raised(amax);
    return {s, Arithmetic::quotient(binary32::one, s)};
  }
  scale_settings settings;
  settings.rule = scale_rule::te;
  settings.nonfinite = nonfinite::propagate;
  return scale_of<Arithmetic>(spec_of(codes_format(f)), settings, static_cast<tile_amax>(amax));
}

/// The value of a code as binary32 bits; `scale` is 1 in formats without scales.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t stored_value(stored_format f, std::uint32_t code,
                                                     std::uint32_t scale) {
  if (is_dynamic(f)) return Arithmetic::product(dynamic_table_of(f).values[code], scale);
  return rescaled<Arithmetic>(spec_of(codes_format(f)), code, scale);
}

/// The code of a value. `factor` is that of block_scale(), or 1 in formats without scales. `random`
/// are update_random_bits random bits; other formats than stochastic ones ignore them.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t stored_code(stored_format f, std::uint32_t value,
                                                    std::uint32_t factor, std::uint32_t random) {
  if (is_dynamic(f)) return dynamic_code(dynamic_table_of(f), Arithmetic::product(value, factor));
  const auto dither = align_random<std::uint32_t>(random, update_random_bits);
  return encode<std::uint32_t>(spec_of(codes_format(f)), stored_rule(f),
                               Arithmetic::product(value, factor), dither)
      .code;
}

/// A binary32 number in two codes of 16 bits.
template <class Word>
struct two_halves {
  Word high;
  Word low;
};

/// low_part::split: the upper half is the number rounded to nearest, ties away from zero, as bf16;
/// so the lower half is a signed difference. A NaN has the upper half 7FFF.
///
/// Source: TransformerEngine, multi_tensor_adam. There NaNs such as 7FFFFFFF get the upper half 8000,
/// which is -0.
template <class Word>
SAMEBITS_INLINE constexpr two_halves<Word> split_weight(Word x) {
  const Word low = x & Word(0xFFFFu);
  const Word high = ((x >> 16u) + (low >> 15u)) & Word(0xFFFFu);
  const mask_of<Word> is_nan = (x & Word(~binary32::sign_bit)) > Word(binary32::inf);
  return {select(is_nan, Word(0x7FFFu), high), select(is_nan, Word(0u), low)};
}

/// The number of two halves: the inverse of split_weight() for all numbers.
template <class Word>
SAMEBITS_INLINE constexpr Word joined_weight(const two_halves<Word>& x) {
  return (((x.high - (x.low >> 15u)) & Word(0xFFFFu)) << 16u) | x.low;
}

/// low_part::kahan: the number rounded to bf16, and the rounding error rounded to bf16.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr two_halves<Word> kahan_weight(Word x) {
  const format_spec f = spec_of(format_id::bf16);
  const Word zero = 0u;
  const Word high = encode<Word>(f, cast_rule{}, x, zero).code;
  const Word value = decode<Word>(f, high);
  const Word error = Arithmetic::canonical(Arithmetic::sum(x, negated(value)));
  const Word low = encode<Word>(f, cast_rule{}, error, zero).code;
  const mask_of<Word> finite = (value & Word(~binary32::sign_bit)) < Word(binary32::inf);
  return {high, select(finite, low, zero)};
}

/// The number of bf16 codes and their rounding errors.
template <class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word compensated_weight(const two_halves<Word>& x) {
  const format_spec f = spec_of(format_id::bf16);
  return Arithmetic::sum(decode<Word>(f, x.high), decode<Word>(f, x.low));
}

}  // namespace samebits::numerics
