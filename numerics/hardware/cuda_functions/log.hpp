// log: CUDA's logf and log2f as nvcc 13.0 compiles them for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits. Neither function uses a function unit.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

/// x = (1 + a) * 2^exponent, 1 + a within a factor of two that begins at `lowest`.
struct log_operand {
  std::uint32_t scaled;    ///< x, or x * 2^23 below 2^-126 (negative numbers included)
  std::uint32_t a;         ///< binary32
  std::uint32_t exponent;  ///< binary32
};

SAMEBITS_HD constexpr log_operand log_operand_of(std::uint32_t x, std::uint32_t lowest) {
  const bool small = ptx::lt(x, binary32::min_normal);
  const std::uint32_t scaled = small ? ptx::mul(x, 0x4B000000) : x;
  const std::uint32_t shift = small ? 0xC1B80000 : 0;  // -23
  const std::uint32_t exponent = (scaled - lowest) & 0xFF800000;
  return {scaled, ptx::add(scaled - exponent, 0xBF800000),
          ptx::fma(ptx::from_int(static_cast<std::int32_t>(exponent)), 0x34000000, shift)};
}

/// The result where it is not `finite`: -Inf for zeros, Inf for Inf, NaN for NaN and negative x.
SAMEBITS_HD constexpr std::uint32_t log_result(const log_operand& x, std::uint32_t finite) {
  if (binary32::is_zero(x.scaled)) return binary32::sign_bit | binary32::inf;
  if (x.scaled < binary32::inf) return finite;
  return ptx::fma(x.scaled, binary32::inf, binary32::inf);
}

/// logf(x) = log(1 + a) + exponent * log(2), 2/3 <= 1 + a < 4/3, by a polynomial in a.
SAMEBITS_HD constexpr std::uint32_t log(std::uint32_t x) {
  const log_operand y = log_operand_of(x, 0x3F2AAAAB);
  const std::uint32_t sum =
      ptx::polynomial(y.a, {0xBE055027, 0x3E1039F6, 0xBDF8CDCC, 0x3E0F2955, 0xBE2AD8B9, 0x3E4CED0B,
                            0xBE7FFF22, 0x3EAAAA78, 0xBF000000});
  const std::uint32_t fraction = ptx::fma(ptx::mul(y.a, sum), y.a, y.a);
  return log_result(y, ptx::fma(y.exponent, 0x3F317218, fraction));
}

/// log2f(x) = log2(1 + a) + exponent, 0.707 <= 1 + a < 1.414, by a polynomial in a.
SAMEBITS_HD constexpr std::uint32_t log2(std::uint32_t x) {
  const log_operand y = log_operand_of(x, 0x3F3504F3);
  const std::uint32_t sum =
      ptx::polynomial(y.a, {0x3DC6B27F, 0xBE2C7F30, 0x3E2FCF2A, 0xBE374E43, 0x3E520BF4, 0xBE763C8B,
                            0x3E93BF99, 0xBEB8AA49, 0x3EF6384A, 0xBF38AA3B});
  const std::uint32_t tail = ptx::mul(y.a, ptx::mul(y.a, sum));
  return log_result(y, ptx::add(y.exponent, ptx::fma(y.a, 0x3FB8AA3B, tail)));
}

}  // namespace samebits::numerics::cuda_13_0
