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

/// A bin is a range of numbers of one sign that holds at most one border: numbers with equal upper
/// 16 bits. The first bin of a sign begins at 0, and the last one ends at Inf.
inline constexpr std::uint32_t dynamic_first_bin = 104 << 7;  ///< the upper bits of 2^-23
inline constexpr std::uint32_t dynamic_last_bin = 127 << 7;   ///< the upper bits of 1
inline constexpr std::uint32_t dynamic_bins = dynamic_last_bin - dynamic_first_bin + 1;

/// The numbers of the codes, and the borders between them.
struct dynamic_table {
  std::uint32_t values[256];   ///< binary32 bits
  std::uint32_t borders[256];  ///< order_key() of the largest number whose code is at most i
  /// The smallest code of each bin, positive numbers first. SIMD lanes read words of 4 bytes, so
  /// three bytes follow the last entry.
  std::uint8_t starts[2 * dynamic_bins + 3];
};

/// Unsigned integers in the order of binary32 numbers; -0 is below +0, and the canonical NaN above
/// +Inf.
template <class Word>
SAMEBITS_INLINE constexpr Word order_key(Word x) {
  const Word sign = binary32::sign_bit;
  return select(x >= sign, Word(0xFFFFFFFFu) - x, x + sign);
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

/// A key that is above the borders below a bin, and not above those in it.
constexpr std::uint32_t lowest_key(bool negative, std::uint32_t bin) {
  const std::uint32_t begin = (dynamic_first_bin + bin) << 16;
  return order_key(negative ? binary32::sign_bit | (begin + 0x10000u) : begin);
}

constexpr dynamic_table table_of(const std::uint32_t (&values)[256]) {
  dynamic_table table = {};
  for (std::uint32_t i = 0; i < 256; ++i) table.values[i] = values[i];
  for (std::uint32_t i = 0; i < 255; ++i) table.borders[i] = border(i, values[i], values[i + 1]);
  table.borders[255] = 0xFFFFFFFFu;
  std::uint8_t code = 0;
  for (std::uint32_t k = 0; k < 2 * dynamic_bins; ++k) {  // in the order of keys
    const bool negative = k < dynamic_bins;
    const std::uint32_t bin = negative ? dynamic_bins - 1 - k : k - dynamic_bins;
    while (table.borders[code] < lowest_key(negative, bin)) ++code;
    table.starts[negative ? dynamic_bins + bin : bin] = code;
  }
  return table;
}

}  // namespace dynamic_detail

/// Of stored_format::dynamic8_signed.
SAMEBITS_TABLE dynamic_table dynamic_signed_table = dynamic_detail::table_of(dynamic_signed_values);
/// Of stored_format::dynamic8_unsigned.
SAMEBITS_TABLE dynamic_table dynamic_unsigned_table =
    dynamic_detail::table_of(dynamic_unsigned_values);

SAMEBITS_INLINE constexpr const dynamic_table& dynamic_table_of(stored_format f) {
  return f == stored_format::dynamic8_signed ? dynamic_signed_table : dynamic_unsigned_table;
}

/// The code of a binary32 number: how many borders are below it. A NaN has code 255.
///
/// start(i) and border(i) return starts[i] and borders[i] of a table; for SIMD lanes, of each lane's
/// index.
///
/// Source: the codes are those of quantize_2D() in bitsandbytes' kernels.cu, followed by its
/// correction of signs, for every number but -0, whose code there is 126.
template <class Word, class Start, class Border>
SAMEBITS_INLINE constexpr Word dynamic_code(const Start& start, const Border& border, Word x) {
  const Word sign = binary32::sign_bit;
  const Word zero = 0u;
  const mask_of<Word> is_nan = (x & Word(~binary32::sign_bit)) > Word(binary32::inf);
  const Word number = select(is_nan, Word(binary32::nan), x);
  const Word upper = (number & Word(~binary32::sign_bit)) >> 16u;
  const Word bin = min_word(max_word(upper, Word(dynamic_first_bin)), Word(dynamic_last_bin));
  const Word of_sign = select(number >= sign, Word(dynamic_bins), zero);
  const Word code = start((bin - Word(dynamic_first_bin)) + of_sign);
  return code + select(border(code) < order_key(number), Word(1u), zero);
}

/// dynamic_code() of one number.
SAMEBITS_INLINE constexpr std::uint32_t dynamic_code(const dynamic_table& table, std::uint32_t x) {
  const auto start = [&](std::uint32_t i) -> std::uint32_t { return table.starts[i]; };
  const auto border = [&](std::uint32_t i) { return table.borders[i]; };
  return dynamic_code(start, border, x);
}

}  // namespace samebits::numerics
