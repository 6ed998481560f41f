// log1p: CUDA's log1pf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits. The function uses no function unit.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

/// log1pf(x) = log(1 + a) + exponent * log(2), (1 + a) * 2^exponent = 1 + x, by a polynomial in a.
SAMEBITS_HD constexpr std::uint32_t log1p(std::uint32_t x) {
  constexpr std::uint32_t minus_one = 0xBF800000;
  if (binary32::is_zero(x)) return x;
  const bool below_minus_one = x > minus_one;  // negative NaN and -Inf included
  if (below_minus_one || (x >= binary32::inf && x < binary32::sign_bit)) {
    return ptx::fma(x, binary32::inf, binary32::inf);  // Inf for Inf, else NaN
  }
  const std::uint32_t total = ptx::add_rz(x, binary32::one);
  const std::uint32_t exponent = (total - 0x3F400000) & 0xFF800000;  // 0.75
  // 1 + x = (x * 2^-e + 2^-e); 2^-e - 1 is exact as (4 * 2^-e) / 4 - 1.
  const std::uint32_t power = ptx::fma(0x3E800000, 0x40800000 - exponent, minus_one);
  const std::uint32_t a = ptx::add(power, x - exponent);
  const std::uint32_t e = ptx::mul(ptx::from_int(static_cast<std::int32_t>(exponent)), 0x34000000);
  const std::uint32_t sum =
      ptx::polynomial(a, {0xBD39BF78, 0x3DD80012, 0xBE0778E0, 0x3E146475, 0xBE2A68DD, 0x3E4CAF9E,
                          0xBE800042, 0x3EAAAAE6, 0xBF000000});
  return ptx::fma(e, 0x3F317218, ptx::fma(ptx::mul(a, sum), a, a));
}

}  // namespace samebits::numerics::cuda_13_0
