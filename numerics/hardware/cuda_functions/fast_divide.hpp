// fast divide: CUDA's __fdividef as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the machine code of ptxas 13.0 for div.approx.f32.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::rcp_approx_ftz;

/// __fdividef(a, b) = a * rcp(b); for |b| < 2^-126 both operands are scaled by 2^24. For
/// |b| > 2^126 the reciprocal is 0.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word fast_divide(operand<Word> a, operand<Word> b) {
  const Word up = 0x4B800000u;  // 2^24
  const mask_of<Word> small = lt(abs<Word>(b), Word(binary32::min_normal));
  const Word numerator = select(small, mul(a, up), Word(a));
  const Word divisor = select(small, mul(b, up), Word(b));
  return mul(rcp_approx_ftz(divisor), numerator);
}

}  // namespace samebits::numerics::cuda_13_0
