// erf: CUDA's erff as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::ex2_approx_ftz;

/// The coefficients of erff above 1.003, from the highest power on.
struct erf_coefficients {
  std::uint32_t outer[7];
};

/// erff(x): a polynomial for |x| < 1.003, then 1 - 2^(a polynomial).
template <class Word>
SAMEBITS_HD constexpr Word erf_by(const erf_coefficients& c, operand<Word> x) {
  constexpr std::uint32_t inner[7] = {0x38B1E96A, 0xBA574D20, 0x3BAAD5EA, 0xBCDC1BE7,
                                      0x3DE718AF, 0xBEC093AC, 0x3E0375D3};
  const Word magnitude = abs<Word>(x);
  const mask_of<Word> is_inner = (magnitude < Word(0x3F8060FE)) | is_nan<Word>(x);
  const Word place = select(is_inner, mul(x, x), magnitude);
  Word sum = select(is_inner, Word(inner[0]), Word(c.outer[0]));
  for (int i = 1; i < 7; ++i) {
    sum = fma(sum, place, select(is_inner, Word(inner[i]), Word(c.outer[i])));
  }
  const Word factor = select(is_inner, Word(x), neg(magnitude));
  const Word product = fma(sum, factor, factor);
  const Word complement = ex2_approx_ftz(product);
  const Word outside = copysign<Word>(x, sub(Word(binary32::one), complement));
  return select(is_inner, product, outside);
}

template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word erf(operand<Word> x) {
  constexpr erf_coefficients c{
      {0x38EB4C3A, 0xBAAE005B, 0x3C09919F, 0xBD24D99A, 0x3E235519, 0x3F69B4F9, 0x3F210A14}};
  return erf_by<Word>(c, x);
}

}  // namespace samebits::numerics::cuda_13_0
