// rsqrt function: CUDA's rsqrtf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::rsqrt_approx;

/// rsqrtf(x) is one instruction.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word rsqrt(operand<Word> x) {
  return rsqrt_approx(x);
}

}  // namespace samebits::numerics::cuda_13_0
