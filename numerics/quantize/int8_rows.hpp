// INT8 by rows: the codes of LLM.int8() of bitsandbytes, whole numbers of -127 .. 127 with one absmax
// for each row.
//
// Sources: bitsandbytes 95f9af30, csrc/kernels.cu (kInt8VectorQuant), backends/default/ops.py
// (int8_vectorwise_quant, int8_vectorwise_dequant).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/hardware/cuda_functions/fast_divide.hpp"
#include "samebits/core/codebook.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

inline constexpr std::uint32_t largest_int8 = 0x42FE0000u;         ///< 127
inline constexpr std::uint32_t one_by_largest_int8 = 0x3C010204u;  ///< RN(1 / 127)

/// The number that the elements of a row are multiplied by: 127 / a. The cuda steps divide with the
/// unit of 1 / x; the cpu steps are PyTorch's, which divides a number by a tensor as (1 / a) * 127.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t int8_factor(codebook_steps steps, std::uint32_t absmax) {
  if (steps == codebook_steps::cpu) {
    return Arithmetic::product(Arithmetic::quotient(binary32::one, absmax), largest_int8);
  }
  return cuda_13_0::fast_divide<std::uint32_t>(largest_int8, absmax);
}

/// The code of an element: x * factor, rounded to the nearest whole number, ties to even. NaN gives 0,
/// and a number beyond 127 gives 127 with its sign.
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::int8_t int8_code(std::uint32_t x, std::uint32_t factor) {
  const std::uint32_t y = Arithmetic::product(x, factor);
  if (binary32::is_nan(y)) return 0;
  constexpr std::uint32_t two_to_23 = 0x4B000000u;
  const std::uint32_t m = binary32::magnitude(y);
  const std::uint32_t bounded = m < largest_int8 ? m : largest_int8;
  // the last place of a number at 2^23 is 1
  const auto whole = static_cast<int>(Arithmetic::sum(bounded, two_to_23) - two_to_23);
  return static_cast<std::int8_t>(y >= binary32::sign_bit ? -whole : whole);
}

/// The number of a code: (code * a) * (1 / 127).
template <class Arithmetic = by_definition>
SAMEBITS_HD constexpr std::uint32_t int8_number(std::int8_t code, std::uint32_t absmax) {
  const bool negative = code < 0;
  const auto magnitude = static_cast<std::uint32_t>(negative ? -code : code);
  const auto number = static_cast<std::uint32_t>(
      encode_scaled(spec_of(format_id::fp32), cast_rule{}, negative, magnitude, 0, 0).code);
  return Arithmetic::product(Arithmetic::product(number, absmax), one_by_largest_int8);
}

}  // namespace samebits::numerics
