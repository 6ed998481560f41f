// tanh: CUDA's tanhf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::ex2_approx_ftz;
using hopper::rcp_approx_ftz;

/// tanhf(x): a polynomial for |x| < 0.6, then 1 - 2 / (e^(2|x|) + 1), then 1.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word tanh(operand<Word> x) {
  const Word one = binary32::one;
  const Word magnitude = abs<Word>(x);
  const Word square = mul(x, x);
  const Word sum = polynomial(square, {0x3C80F082, 0xBD563CAE, 0x3E085941, 0xBEAAA9ED, 0x00000000});
  const Word inner = fma(sum, x, x);
  const Word power = ex2_approx_ftz(mul(magnitude, Word(0x4038AA3B)));
  const Word reciprocal = rcp_approx_ftz(add(power, one));
  const Word finite = fma(reciprocal, Word(0xC0000000), one);
  const Word outer = select(magnitude >= Word(0x41102CB4), one, finite);  // 9.01
  const mask_of<Word> is_inner = (magnitude < Word(0x3F19999A)) | is_nan<Word>(x);
  return select(is_inner, inner, copysign<Word>(x, outer));
}

}  // namespace samebits::numerics::cuda_13_0
