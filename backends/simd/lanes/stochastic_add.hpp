// Stochastic add: stochastic rounding with the FP unit. A few instructions replace round_shift(),
// with equal results.
//
// docs/decisions/0013 has the proof; the conformance and exhaustive tests compare the results.
#pragma once

#include <cstdint>

#include "backends/simd/lanes/nearest_add.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::simd {

/// The code with unbounded exponent of a magnitude up to the first power of two above max finite.
/// Requires at most as many random bits as binary32 has mantissa bits beyond the target's.
///
/// To magnitudes below the smallest normal number, that number is added with rounding toward zero.
/// The discarded bits then have the position that they have in normal numbers.
template <class Isa>
SAMEBITS_INLINE typename Isa::word stochastic_by_few_bits(const format_spec& to,
                                                          typename Isa::word bounded,
                                                          typename Isa::word dither) {
  using word = typename Isa::word;
  const auto drop = static_cast<std::uint32_t>(mantissa_bits_beyond(to));
  const std::uint32_t min_normal = power_of_two(numerics::min_exponent(to));
  const std::uint32_t base = min_normal >> drop;
  const auto small = bounded < word(min_normal);
  const word aligned = Isa::add_toward_zero_where(small, bounded, min_normal);
  const word q = (aligned + (dither >> (32 - drop))) >> drop;
  return q - select(small, word(base), word(base - (1u << to.mantissa_bits)));
}

/// Like stochastic_by_few_bits(), for any number of random bits.
///
/// Multiplied by a power of two, the magnitude is a number of steps of the target's spacing. Its
/// fraction times 2^32, truncated, is compared with the random bits.
template <class Isa>
SAMEBITS_INLINE typename Isa::word stochastic_by_any_bits(const format_spec& to,
                                                          typename Isa::word bounded,
                                                          typename Isa::word dither) {
  using word = typename Isa::word;
  const auto drop = static_cast<std::uint32_t>(mantissa_bits_beyond(to));
  const word min_normal = power_of_two(numerics::min_exponent(to));
  const word binade = max_word(bounded & word(numerics::binary<std::uint32_t>::inf), min_normal);
  const word steps = Isa::multiply(bounded, word(power_of_two(to.mantissa_bits + 127)) - binade);
  const word fraction = Isa::truncated(Isa::multiply(Isa::fraction(steps), power_of_two(32)));
  const word q = Isa::truncated(steps) + ((binade - min_normal) >> drop);
  return select(dither > ~fraction, q + word(1u), q);
}

/// numerics::encode() with stochastic rounding. `field` is the width of the random field.
template <class Isa>
SAMEBITS_INLINE typename Isa::word encode_stochastic(const format_spec& to, const cast_rule& rule,
                                                     typename Isa::word bits, int field,
                                                     typename Isa::word dither) {
  return encode_bounded<Isa>(
      to, rule, bits, [&](auto bounded) __attribute__((always_inline)) {
        return field <= mantissa_bits_beyond(to) ? stochastic_by_few_bits<Isa>(to, bounded, dither)
                                                 : stochastic_by_any_bits<Isa>(to, bounded, dither);
      });
}

}  // namespace samebits::simd
