// Full divide: the instruction div.full.f32, which Triton 3.6 uses for `/`.
//
// Source: the machine code of ptxas for sm_90.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::triton_3_6 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::rcp_approx_ftz;

/// a / b = a * rcp(b), both scaled by 1/4 for |b| > 2^126 and by 2^24 for |b| < 2^-126.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word full_divide(operand<Word> a, operand<Word> b) {
  const Word magnitude = abs<Word>(b);
  const mask_of<Word> large = lt(Word(0x7E800000), magnitude);
  const mask_of<Word> small = lt(magnitude, Word(binary32::min_normal));
  const Word scale =
      select(large, Word(0x3E800000), select(small, Word(0x4B800000), Word(binary32::one)));
  return mul(rcp_approx_ftz(mul(b, scale)), mul(a, scale));
}

}  // namespace samebits::numerics::triton_3_6
