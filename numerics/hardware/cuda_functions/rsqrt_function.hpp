// rsqrt function: CUDA's rsqrtf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/hardware/function_units/rsqrt.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

/// rsqrtf(x) is one instruction.
SAMEBITS_HD constexpr std::uint32_t rsqrt(std::uint32_t x) { return hopper::rsqrt_approx(x); }

}  // namespace samebits::numerics::cuda_13_0
