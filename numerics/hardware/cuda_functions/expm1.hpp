// expm1: CUDA's expm1f as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

/// expm1f(x) = 2^n * (e^r - 1) + (2^n - 1), r = x - n * log(2), by a polynomial in r.
SAMEBITS_HD constexpr std::uint32_t expm1(std::uint32_t x) {
  constexpr std::uint32_t minus_one = 0xBF800000;
  constexpr std::uint32_t largest = 0x43000000;  // 128
  if (binary32::is_zero(x)) return x;
  const bool small = ptx::lt(binary32::magnitude(x), 0x3ED1EB85);  // 0.41: n = 0
  const std::uint32_t n = small ? 0 : ptx::nearest_whole(ptx::mul(x, 0x3FB8AA3B));
  const std::uint32_t upper = ptx::fma(ptx::neg(n), 0x3F317200, x);  // log(2) in two parts
  const std::uint32_t r = ptx::fma(ptx::neg(n), 0x35BFBE8E, upper);
  const bool halved = n == largest;  // 2^128 is twice 2^127
  const std::uint32_t power = halved ? ptx::add(n, minus_one) : n;
  const std::uint32_t sum =
      ptx::polynomial(r, {0x3AB5EBE6, 0x3C095663, 0x3D2AABE3, 0x3E2AA9F6, 0x3EFFFFFE});
  const std::uint32_t fraction = ptx::fma(ptx::mul(r, sum), r, r);
  const std::uint32_t scale = hopper::ex2_approx(power);
  const std::uint32_t result = ptx::fma(fraction, scale, ptx::add(scale, minus_one));
  if (ptx::lt(power, 0xC1C80000)) return minus_one;  // -25
  if (ptx::lt(largest, power)) return binary32::inf;
  return halved ? ptx::add(result, result) : result;
}

}  // namespace samebits::numerics::cuda_13_0
