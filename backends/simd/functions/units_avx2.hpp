// Hopper's function units on AVX2 lanes: names for the functions of units.hpp, which CUDA's
// functions find by the namespace of their operands.
#pragma once

#include "backends/simd/functions/steps_avx2.hpp"
#include "backends/simd/functions/units.hpp"

namespace samebits::avx2 {

using simd::ex2_approx;
using simd::ex2_approx_ftz;
using simd::rcp_approx_ftz;
using simd::rsqrt_approx;
using simd::rsqrt_approx_ftz;

}  // namespace samebits::avx2
