// Decode: a code of any format into binary32 or binary64 bits, exactly.
#pragma once

#include <cstdint>

#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// The value of a code as binary32 (Word = std::uint32_t; not from fp64) or binary64 bits.
///
/// Bits beyond the format's own are ignored. A NaN stays a NaN with the code's sign, which fnuz and
/// e8m0 do not have, and with any payload: encode() makes it canonical by the NaN policy.
/// Exact: every row but fp64 is a subset of binary32 (asserted in layout.hpp).
template <class Word>
SAMEBITS_INLINE constexpr Word decode(const format_spec& from, Word code) {
  using element = element_of<Word>;
  using target = binary<element>;
  constexpr int width = target::width;
  constexpr int target_bits = target::mantissa_bits;
  const int m_bits = from.mantissa_bits;
  const auto widen = static_cast<element>(target_bits - m_bits);
  const auto rebias = static_cast<element>(target::bias - from.bias);
  const Word zero = element{0};
  const Word nan = target::nan;
  const Word max = static_cast<element>(max_finite(from));
  code = code >> static_cast<element>(from.padding_bits);

  // The same binades, subnormals and specials, and the sign on top; a payload moves along, and what
  // lies above the format's bits is shifted out.
  if (from.bias == target::bias && from.special != specials::scale) {
    return code << static_cast<element>(width - significant_bits(from));
  }
  code = code & Word(static_cast<element>(magnitude_mask(from) | sign_mask(from)));

  if (from.special == specials::scale) {  // 2^(code - 127); binary32 holds code 00 as a subnormal
    const Word biased = code + Word(rebias);
    const Word half = element{1} << (target_bits - 1);
    const Word value = select(biased == zero, half, biased << element{target_bits});
    return select(code > max, nan, value);
  }

  const Word magnitude = code & Word(static_cast<element>(magnitude_mask(from)));
  const mask_of<Word> negative = code != magnitude;
  const Word sign = select(negative, Word(target::sign_bit), zero);

  const Word normal = (magnitude << widen) + Word(static_cast<element>(rebias << target_bits));
  // A subnormal is mantissa * 2^(1 - bias - m_bits). Shifted up until its leading bit takes the
  // implicit position, it adds 1 to the exponent field below, which therefore holds one less.
  const Word up = leading_zeros(magnitude) - Word(element{width - 1 - target_bits});
  const Word subnormal =
      ((Word(static_cast<element>(rebias + widen)) - up) << element{target_bits}) +
      (magnitude << min_word(up, Word(element{target_bits})));
  const Word least_normal = element{1} << static_cast<element>(m_bits);
  Word value = select(magnitude < least_normal, subnormal, normal);
  value = select(magnitude == zero, zero, value);
  if (has_nan(from)) value = select(magnitude > max, nan, value);
  if (has_inf(from)) {
    value =
        select(magnitude == Word(static_cast<element>(inf_code(from))), Word(target::inf), value);
  }
  if (from.special == specials::fnuz)
    return select(negative & (magnitude == zero), nan, sign | value);
  return sign | value;
}

}  // namespace samebits::numerics
