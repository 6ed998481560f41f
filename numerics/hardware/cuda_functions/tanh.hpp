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

/// tanhf(x): a polynomial for |x| < 0.6, then 1 - 2 / (e^(2|x|) + 1), then 1.
SAMEBITS_HD constexpr std::uint32_t tanh(std::uint32_t x) {
  const std::uint32_t magnitude = binary32::magnitude(x);
  if (magnitude < 0x3F19999A || binary32::is_nan(x)) {
    const std::uint32_t square = ptx::mul(x, x);
    const std::uint32_t sum =
        ptx::polynomial(square, {0x3C80F082, 0xBD563CAE, 0x3E085941, 0xBEAAA9ED, 0x00000000});
    return ptx::fma(sum, x, x);
  }
  if (magnitude >= 0x41102CB4) return ptx::copysign(x, binary32::one);  // 9.01
  const std::uint32_t power = hopper::ex2_approx_ftz(ptx::mul(magnitude, 0x4038AA3B));
  const std::uint32_t reciprocal = hopper::rcp_approx_ftz(ptx::add(power, binary32::one));
  return ptx::copysign(x, ptx::fma(reciprocal, 0xC0000000, binary32::one));
}

}  // namespace samebits::numerics::cuda_13_0
