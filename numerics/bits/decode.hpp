// Decode: turns a code of any format into binary32 or binary64 bits, exactly.
#pragma once

#include "numerics/bits/layout.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// Returns the value of a code as binary32 bits (Word = std::uint32_t; not for fp64) or as binary64
/// bits (Word = std::uint64_t).
///
/// Bits above the format's width are ignored. A NaN stays a NaN, with any payload; encode() later
/// makes it canonical under the NaN policy. The NaN keeps the sign of its code; NaNs of fnuz and
/// e8m0 have no sign. The result is exact: every format except fp64 is a subset of binary32
/// (asserted in layout.hpp).
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

  // Here source and target share the exponent range, the subnormals and the special codes. One
  // shift moves the sign to the top, carries a NaN payload along and drops the bits above the
  // format.
  if (from.bias == target::bias && from.special != specials::scale) {
    return code << static_cast<element>(width - significant_bits(from));
  }
  code = code & Word(static_cast<element>(magnitude_mask(from) | sign_mask(from)));

  // e8m0: the value is 2^(code - 127). Code 00 is a subnormal in binary32.
  if (from.special == specials::scale) {
    const Word biased = code + Word(rebias);
    const Word half = element{1} << (target_bits - 1);
    const Word value = select(biased == zero, half, biased << element{target_bits});
    return select(code > max, nan, value);
  }

  const Word magnitude = code & Word(static_cast<element>(magnitude_mask(from)));
  const mask_of<Word> negative = code != magnitude;
  const Word sign = select(negative, Word(target::sign_bit), zero);

  const Word normal = (magnitude << widen) + Word(static_cast<element>(rebias << target_bits));
  // A subnormal is mantissa * 2^(1 - bias - m_bits). The shift `up` moves its leading bit to the
  // position of the implicit bit. The leading bit then adds 1 to the exponent field below, so that
  // field is built one smaller.
  const Word up = leading_zeros(magnitude) - Word(element{width - 1 - target_bits});
  const Word subnormal =
      ((Word(static_cast<element>(rebias + widen)) - up) << element{target_bits}) +
      (magnitude << min_word(up, Word(element{target_bits})));
  const Word min_normal = element{1} << static_cast<element>(m_bits);
  Word value = select(magnitude < min_normal, subnormal, normal);
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
