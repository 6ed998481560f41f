// Triton functions: tl.exp, tl.exp2, tl.log, tl.log2, tl.erf, tl.rsqrt and tl.sigmoid of Triton 3.6
// on sm_90.
//
// Source: the PTX that Triton 3.6.0 emits. Its steps flush subnormals (.ftz); where CUDA's function
// stands here instead, both return the same bits for every operand.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/erf.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::triton_3_6 {

using hopper::ex2_approx_ftz;
using hopper::rsqrt_approx_ftz;

/// tl.exp(x) = ex2(x * log2(e)), as __expf.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word exp(operand<Word> x) {
  return cuda_13_0::fast_exp<Word>(x);
}

template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word exp2(operand<Word> x) {
  return ex2_approx_ftz(x);
}

template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word rsqrt(operand<Word> x) {
  return rsqrt_approx_ftz(x);
}

/// libdevice.erf before its flush of subnormals. Triton's libdevice has other coefficients than
/// CUDA 13.0's.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word erf_with_subnormals(operand<Word> x) {
  constexpr cuda_13_0::erf_coefficients c{
      {0x3789CA3C, 0xB9F560B9, 0x3BAC840B, 0xBD0C8162, 0x3E1CF906, 0x3F6A937E, 0x3F20D842}};
  return cuda_13_0::erf_by<Word>(c, x);
}

/// tl.erf(x): the last step of the inner polynomial flushes subnormal x and results to +-0.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word erf(operand<Word> x) {
  const Word flushed =
      select(abs<Word>(x) < Word(binary32::min_normal), x & Word(binary32::sign_bit), Word(x));
  return erf_with_subnormals<Word>(flushed);
}

/// tl.sigmoid(x) = 1 / (tl.exp(-x) + 1)
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word sigmoid(operand<Word> x) {
  const Word one = binary32::one;
  return full_divide<Word>(one, add(exp<Word>(sub(Word(0u), x)), one));
}

}  // namespace samebits::numerics::triton_3_6
