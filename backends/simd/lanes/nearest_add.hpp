// Nearest add: rounds to nearest even with the FP adder. One hardware instruction replaces
// round_shift(), with equal results.
//
// Adding 2^(e + d) to a magnitude of binade e makes the adder round it to the spacing 2^(e + d -
// 23), ties to even. A format with 23 - d mantissa bits has this spacing. docs/decisions/0010 has
// the proof; the conformance and exhaustive tests compare the results.
#pragma once

#include <cstdint>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::simd {

/// Whether a format is supported. Its exponent range must be smaller than binary32's, so that sums
/// are normal numbers and the subnormal modes of MXCSR do not matter.
constexpr bool supports_nearest_add(const format_spec& to) {
  return to.bias < 127 && to.special != specials::scale && to.mantissa_bits < 23;
}

/// Number of mantissa bits that binary32 has beyond the target's.
SAMEBITS_INLINE constexpr int mantissa_bits_beyond(const format_spec& to) {
  return numerics::binary<std::uint32_t>::mantissa_bits - to.mantissa_bits;
}

/// binary32 bits of 2^exponent. Requires the exponent of a normal number.
SAMEBITS_INLINE constexpr std::uint32_t power_of_two(int exponent) {
  using source = numerics::binary<std::uint32_t>;
  return static_cast<std::uint32_t>(exponent + source::bias) << source::mantissa_bits;
}

/// numerics::encode() with nearest_even, for finite numbers that round to at most max finite. No
/// policy can apply.
template <class Isa>
SAMEBITS_INLINE typename Isa::word encode_nearest_bounded(const format_spec& to,
                                                          typename Isa::word bits) {
  using word = typename Isa::word;
  using source = numerics::binary<std::uint32_t>;
  const auto drop = static_cast<std::uint32_t>(mantissa_bits_beyond(to));
  const std::uint32_t min_normal = power_of_two(numerics::min_exponent(to));
  const word sign = (bits >> static_cast<std::uint32_t>(31 - numerics::magnitude_bits(to))) &
                    word(static_cast<std::uint32_t>(numerics::sign_mask(to)));
  const word binade = max_word(bits & word(source::inf), word(min_normal));
  const word magic = binade + word(drop << source::mantissa_bits);
  const word q = Isa::nearest_add(bits & word(~source::sign_bit), magic) - magic;
  return (q + (binade >> drop) - word(min_normal >> drop)) | sign;
}

/// numerics::encode() with a given rounding function. code_of(magnitude) returns the code with
/// unbounded exponent, for magnitudes up to the first power of two above max finite.
template <class Isa, class CodeOf>
SAMEBITS_INLINE typename Isa::word encode_bounded(const format_spec& to, const cast_rule& rule,
                                                  typename Isa::word bits, const CodeOf& code_of) {
  using word = typename Isa::word;
  using source = numerics::binary<std::uint32_t>;
  const auto max_field = static_cast<int>(numerics::max_finite(to) >> to.mantissa_bits);
  const std::uint32_t huge = power_of_two(max_field - to.bias + 1);

  const word magnitude = bits & word(~source::sign_bit);
  const auto negative = (bits & word(source::sign_bit)) != word(0u);
  const word sign = (bits >> static_cast<std::uint32_t>(31 - numerics::magnitude_bits(to))) &
                    word(static_cast<std::uint32_t>(numerics::sign_mask(to)));
  const auto is_nan = magnitude > word(source::inf);
  const auto is_inf = magnitude == word(source::inf);
  const word code = code_of(min_word(magnitude, word(huge)));
  // The flags of encode() are not needed here.
  return numerics::finish<word>(to, rule, negative, sign, is_nan, is_inf, code, is_nan).code;
}

/// numerics::encode() with nearest_even.
template <class Isa>
SAMEBITS_INLINE typename Isa::word encode_nearest(const format_spec& to, const cast_rule& rule,
                                                  typename Isa::word bits) {
  using word = typename Isa::word;
  using source = numerics::binary<std::uint32_t>;
  const auto drop = static_cast<std::uint32_t>(mantissa_bits_beyond(to));
  const std::uint32_t min_normal = power_of_two(numerics::min_exponent(to));
  return encode_bounded<Isa>(
      to, rule, bits, [&](word bounded) __attribute__((always_inline)) {
        const word binade = max_word(bounded & word(source::inf), word(min_normal));
        const word magic = binade + word(drop << source::mantissa_bits);
        const word q = Isa::nearest_add(bounded, magic) - magic;
        return q + (binade >> drop) - word(min_normal >> drop);
      });
}

}  // namespace samebits::simd
