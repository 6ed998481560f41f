// exp: CUDA's expf and exp2f as nvcc 13.0 compiles them for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

/// expf(x) = 2^n * ex2(x * log2(e) - n). n is a whole number near x * log2(e), in -126 .. 126.
SAMEBITS_HD constexpr std::uint32_t exp(std::uint32_t x) {
  const std::uint32_t place = ptx::saturate(ptx::fma(x, 0x3BBB989D, 0x3F000000));
  // 12582913 + 252 * place: the ulp is 1, so the low bits of this number are n + 127.
  const std::uint32_t shifted = ptx::fma(place, 0x437C0000, 0x4B400001, rounding::downward);
  const std::uint32_t n = ptx::add(shifted, 0xCB40007F);
  const std::uint32_t upper = ptx::fma(x, 0x3FB8AA3B, ptx::neg(n));  // log2(e) in two parts
  const std::uint32_t exponent = ptx::fma(x, 0x32A57060, upper);
  return ptx::mul(hopper::ex2_approx_ftz(exponent), shifted << 23);
}

/// exp2f(x) is one instruction.
SAMEBITS_HD constexpr std::uint32_t exp2(std::uint32_t x) { return hopper::ex2_approx(x); }

}  // namespace samebits::numerics::cuda_13_0
