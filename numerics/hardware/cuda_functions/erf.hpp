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

/// erff(x): a polynomial for |x| < 1.003, then 1 - 2^(a polynomial).
SAMEBITS_HD constexpr std::uint32_t erf(std::uint32_t x) {
  const std::uint32_t magnitude = binary32::magnitude(x);
  if (magnitude < 0x3F8060FE || binary32::is_nan(x)) {
    const std::uint32_t sum = ptx::polynomial(
        ptx::mul(x, x),
        {0x38B1E96A, 0xBA574D20, 0x3BAAD5EA, 0xBCDC1BE7, 0x3DE718AF, 0xBEC093AC, 0x3E0375D3});
    return ptx::fma(sum, x, x);
  }
  const std::uint32_t sum = ptx::polynomial(
      magnitude,
      {0x38EB4C3A, 0xBAAE005B, 0x3C09919F, 0xBD24D99A, 0x3E235519, 0x3F69B4F9, 0x3F210A14});
  const std::uint32_t exponent = ptx::fma(sum, ptx::neg(magnitude), ptx::neg(magnitude));
  const std::uint32_t complement = hopper::ex2_approx_ftz(exponent);
  return ptx::copysign(x, ptx::add(binary32::one, ptx::neg(complement)));
}

}  // namespace samebits::numerics::cuda_13_0
