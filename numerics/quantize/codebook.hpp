// Codebooks: the code of a scaled element, and the number of a code (samebits/core/codebook.hpp).
//
// Sources: bitsandbytes 95f9af30, csrc/kernels.cu (dQuantizeFP4, dQuantizeNF4, dQuantize),
// csrc/cpu_ops.cpp (quantize_cpu_impl), backends/default/ops.py (quantize_4bit).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/update/dynamic_codes.hpp"
#include "samebits/core/codebook.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

inline constexpr std::uint32_t one_e_minus_38 =
    0x006CE3EEu;  ///< 1e-38, the cpu steps' least absmax

/// The codes of a book in ascending order of their numbers, and the borders between them.
struct codebook_table {
  int count;
  std::uint8_t order[256];     ///< code of the i-th number
  std::uint32_t borders[255];  ///< order_key() of the largest y whose number is at most the i-th
  std::uint32_t numbers[256];  ///< number of each code, binary32 bits
  std::uint8_t code_of_nan;
};

namespace codebook_detail {

inline constexpr std::uint32_t nf4_numbers[16] = {
    0xBF800000, 0xBF3239B1, 0xBF066B30, 0xBECA32A0, 0xBE91A24D, 0xBE3D353F, 0xBDBA7871, 0x00000000,
    0x3DA2FAFF, 0x3E24CAE3, 0x3E7C04DD, 0x3EAD033A, 0x3EE1A4B8, 0x3F1007AB, 0x3F3913B3, 0x3F800000};
/// The numbers of the codes 0 to 7, binary32 bits: 0, .0625, 8, 12, 4, 6, 2 and 3, each divided by 12.
inline constexpr std::uint32_t fp4_numbers[8] = {0x00000000, 0x3BAAAAAB, 0x3F2AAAAB, 0x3F800000,
                                                 0x3EAAAAAB, 0x3F000000, 0x3E2AAAAB, 0x3E800000};
/// Codes in the order of their magnitudes.
inline constexpr std::uint8_t fp4_order[8] = {0, 1, 6, 7, 4, 5, 2, 3};
/// Thresholds between these: .00260417, .0859375, .20833333, .29166667, .4166667, .583333, .8333333.
inline constexpr std::uint32_t fp4_thresholds[7] = {0x3B2AAAB9, 0x3DB00000, 0x3E555555, 0x3E955555,
                                                    0x3ED55556, 0x3F155550, 0x3F555555};

constexpr std::uint32_t middle(std::uint32_t a, std::uint32_t b) {
  return binary32::multiply(binary32::add(a, b), 0x3F000000u);
}

/// Borders at the midpoints; a tie takes the lower number.
constexpr void set_midpoints(codebook_table& t) {
  for (int i = 0; i + 1 < t.count; ++i) {
    t.borders[i] = order_key(middle(t.numbers[t.order[i]], t.numbers[t.order[i + 1]]));
  }
}

constexpr codebook_table nf4(codebook_steps steps) {
  codebook_table t = {};
  t.count = 16;
  for (int i = 0; i < 16; ++i) {
    t.order[i] = static_cast<std::uint8_t>(i);
    t.numbers[i] = nf4_numbers[i];
  }
  set_midpoints(t);
  t.code_of_nan = steps == codebook_steps::cuda ? 0 : 15;
  return t;
}

/// The cpu steps sort the numbers with torch.argsort(), which puts code 0 before code 8.
constexpr codebook_table fp4(codebook_steps steps) {
  const bool cuda = steps == codebook_steps::cuda;
  codebook_table t = {};
  t.count = 16;
  for (std::uint32_t i = 0; i < 8; ++i) {
    t.numbers[i] = fp4_numbers[i];
    t.numbers[8 + i] = fp4_numbers[i] | (cuda || i != 0 ? binary32::sign_bit : 0u);
    t.order[8 + i] = fp4_order[i];
    t.order[7 - i] = static_cast<std::uint8_t>(8 + fp4_order[i]);
  }
  if (!cuda) {
    t.order[7] = 0;
    t.order[8] = 8;
    set_midpoints(t);
    t.code_of_nan = 3;
    return t;
  }
  for (int i = 0; i < 7; ++i) {  // a tie takes the smaller magnitude
    t.borders[8 + i] = order_key(fp4_thresholds[i]);
    t.borders[6 - i] = order_key(fp4_thresholds[i] | binary32::sign_bit) - 1;
  }
  t.borders[7] = order_key(binary32::sign_bit) - 1;  // -0 has code 0
  t.code_of_nan = 0;
  return t;
}

/// The cuda steps search from code 127 and take the even code on a tie.
constexpr codebook_table dynamic8() {
  codebook_table t = {};
  t.count = 256;
  for (std::uint32_t i = 0; i < 256; ++i) {
    t.order[i] = static_cast<std::uint8_t>(i);
    t.numbers[i] = dynamic_signed_values[i];
  }
  set_midpoints(t);
  for (std::uint32_t i = 0; i < 255; ++i) t.borders[i] -= i % 2;
  t.code_of_nan = 0;
  return t;
}

}  // namespace codebook_detail

SAMEBITS_TABLE codebook_table nf4_tables[2] = {codebook_detail::nf4(codebook_steps::cuda),
                                               codebook_detail::nf4(codebook_steps::cpu)};
SAMEBITS_TABLE codebook_table fp4_tables[2] = {codebook_detail::fp4(codebook_steps::cuda),
                                               codebook_detail::fp4(codebook_steps::cpu)};
SAMEBITS_TABLE codebook_table dynamic8_table = codebook_detail::dynamic8();

SAMEBITS_INLINE constexpr const codebook_table& codebook_of(codebook book, codebook_steps steps) {
  const int i = static_cast<int>(steps);
  if (book == codebook::nf4) return nf4_tables[i];
  if (book == codebook::fp4) return fp4_tables[i];
  return dynamic8_table;
}

/// The code of a scaled element: how many borders are below it.
SAMEBITS_INLINE constexpr std::uint8_t codebook_code(const codebook_table& t, std::uint32_t y) {
  if (binary32::is_nan(y)) return t.code_of_nan;
  const std::uint32_t key = order_key(y);
  int below = 0;
  for (int step = t.count / 2; step > 0; step /= 2) {
    if (t.borders[below + step - 1] < key) below += step;
  }
  return t.order[below];
}

/// The bin of the cpu steps of dynamic8: y, clamped to -1 .. 1, on a scale of 0 .. 65535.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t dynamic8_bin(std::uint32_t y) {
  const std::uint32_t one = binary32::one;
  const bool negative = y >= binary32::sign_bit && !binary32::is_nan(y);  // a NaN is as 1
  if (binary32::magnitude(y) > one) y = negative ? one | binary32::sign_bit : one;
  const std::uint32_t half = Arithmetic::product(Arithmetic::sum(y, one), 0x3F000000u);
  const std::uint32_t t =
      Arithmetic::sum(Arithmetic::product(half, 0x477FFF00u), 0x3F000000u);  // 65535, 0.5
  if (t < one) return 0;
  return ((t & 0x007FFFFFu) | 0x00800000u) >> (23 + 127 - (t >> 23));
}

/// The number that stands for a bin: -1 + (2 * bin) / 65535.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t dynamic8_bin_number(std::uint32_t bin) {
  const auto twice = static_cast<std::uint32_t>(
      encode_scaled(spec_of(format_id::fp32), cast_rule{}, false, 2 * bin, 0, 0).code);
  return Arithmetic::sum(Arithmetic::quotient(twice, 0x477FFF00u), 0xBF800000u);
}

/// How the elements of a block are scaled.
struct codebook_scale {
  std::uint32_t stored;  ///< absmax
  std::uint32_t factor;  ///< y = x * factor, or x / factor if `divides`
  bool divides;
};

/// The largest magnitude of a block so far and one more element.
SAMEBITS_INLINE constexpr std::uint32_t block_absmax(codebook book, codebook_steps steps,
                                                     std::uint32_t a, std::uint32_t x) {
  const std::uint32_t m = binary32::amax_bits(x);
  const bool skips = steps == codebook_steps::cuda || book == codebook::dynamic8;
  return skips && m > binary32::inf ? a : (a < m ? m : a);
}

/// The scale of a block from its absmax. `complete`: the block is not cut at the end.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr codebook_scale codebook_scale_of(codebook book, codebook_steps steps,
                                                       std::uint32_t a, bool complete) {
  if (steps == codebook_steps::cuda || book == codebook::dynamic8) {
    return {a, Arithmetic::quotient(binary32::one, a), false};
  }
  const std::uint32_t raised = a < one_e_minus_38 ? one_e_minus_38 : a;
  if (!complete) return {raised, raised, true};
  return {a, Arithmetic::quotient(binary32::one, raised), false};
}

/// The code of an element x of a block.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint8_t block_code(codebook book, codebook_steps steps,
                                              const codebook_table& t, const codebook_scale& scale,
                                              std::uint32_t x) {
  if (book == codebook::dynamic8 && steps == codebook_steps::cpu) {
    if (scale.stored == 0) return 0;
    const std::uint32_t bin = dynamic8_bin<Arithmetic>(Arithmetic::product(x, scale.factor));
    // the table of bins breaks ties downward
    const std::uint32_t key = order_key(dynamic8_bin_number<Arithmetic>(bin));
    int code = 0;
    while (code < 255 && t.borders[code] + static_cast<unsigned>(code % 2) < key) ++code;
    return static_cast<std::uint8_t>(code);
  }
  return codebook_code(t, scale.divides ? Arithmetic::quotient(x, scale.factor)
                                        : Arithmetic::product(x, scale.factor));
}

/// The absmax of a block from its dynamic8 number: number * a + offset, in two steps.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t restored_absmax(std::uint32_t number, std::uint32_t a,
                                                    std::uint32_t offset) {
  return Arithmetic::sum(Arithmetic::product(number, a), offset);
}

}  // namespace samebits::numerics
