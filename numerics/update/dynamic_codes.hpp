// Dynamic 8-bit codes: bitsandbytes' codes for states of an optimizer (contract §12, "Dynamic
// codes"). A code is an index of a table of 256 ascending numbers; the code of x is that of the
// nearest number.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/update/dynamic_values.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// The numbers of the codes, and the borders between them.
struct dynamic_table {
  std::uint32_t values[256];   ///< binary32 bits
  std::uint32_t borders[255];  ///< order_key() of the largest number whose code is at most i
};

/// Unsigned integers in the order of binary32 numbers; -0 is below +0, and every NaN above +Inf.
template <class Word>
SAMEBITS_INLINE constexpr Word order_key(Word x) {
  const Word sign = binary32::sign_bit;
  const Word highest = 0xFFFFFFFFu;
  const Word key = select(x >= sign, highest - x, x + sign);
  return select((x & Word(~binary32::sign_bit)) > Word(binary32::inf), highest, key);
}

namespace dynamic_detail {

inline constexpr std::uint32_t half = 0x3F000000u;

/// Border i. On a tie between the codes i and i + 1 the even one is taken. Negative numbers never
/// get the code of 0.
constexpr std::uint32_t border(std::uint32_t i, std::uint32_t below, std::uint32_t above) {
  if (below >= binary32::sign_bit && above == 0) return order_key(binary32::sign_bit) - 1;
  const std::uint32_t middle = binary32::multiply(binary32::add(below, above), half);
  return order_key(middle) - i % 2;
}

constexpr dynamic_table table_of(const std::uint32_t (&values)[256]) {
  dynamic_table table = {};
  for (std::uint32_t i = 0; i < 256; ++i) table.values[i] = values[i];
  for (std::uint32_t i = 0; i < 255; ++i) table.borders[i] = border(i, values[i], values[i + 1]);
  return table;
}

}  // namespace dynamic_detail

/// For first states.
SAMEBITS_TABLE dynamic_table dynamic_signed_table =
    dynamic_detail::table_of(dynamic_signed_values);
/// For second states, which are not negative.
SAMEBITS_TABLE dynamic_table dynamic_unsigned_table =
    dynamic_detail::table_of(dynamic_unsigned_values);

SAMEBITS_INLINE constexpr const dynamic_table& dynamic_table_of(stored_format f) {
  return f == stored_format::dynamic8_signed ? dynamic_signed_table : dynamic_unsigned_table;
}

/// The code of a binary32 number: how many borders are below it. A NaN has code 255.
///
/// border(i) returns borders[i] of a table; for SIMD lanes, of each lane's index.
///
/// Source: the codes are those of quantize_2D() in bitsandbytes' kernels.cu, followed by its
/// correction of signs, for every number but -0, whose code there is 126.
template <class Word, class Border>
SAMEBITS_INLINE constexpr Word dynamic_code(const Border& border, Word x) {
  const Word key = order_key(x);
  Word code = 0u;
  for (std::uint32_t step = 128; step != 0; step /= 2) {
    code = code + select(border(code + Word(step - 1)) < key, Word(step), Word(0u));
  }
  return code;
}

}  // namespace samebits::numerics
