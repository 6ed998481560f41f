// Instructions on pairs of binary16 numbers in a word: conversion from and to FP8 codes, and
// arithmetic on both halves at once (PTX ISA, cvt and the half precision instructions). Rounding is
// to nearest even, subnormals are kept.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/halves.cuh"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace samebits::cuda {

/// The values of two FP8 codes as binary16: bytes 0 and 1 of the word for Pair 0, bytes 2 and 3 for
/// Pair 1. NaN gives a NaN.
template <format_id F, int Pair>
__device__ __forceinline__ std::uint32_t half_pair_of(std::uint32_t word) {
  if constexpr (F == format_id::e5m2) {
    return __byte_perm(word, 0, Pair == 0 ? 0x1404 : 0x3424);  // e5m2: upper byte of fp16
  } else {
    static_assert(F == format_id::e4m3);
#if __CUDA_ARCH__ >= 890
    std::uint32_t halves;
    const auto pair = static_cast<unsigned short>(word >> (16 * Pair));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
#else
    return 0;  // why_not_native() keeps older GPUs away
#endif
  }
}

/// The values of two FP8 codes as binary32: bytes 0 and 1 of the word for pair 0, bytes 2 and 3 for
/// pair 1. NaN gives a NaN.
template <format_id F>
__device__ __forceinline__ float2 float_pair_of(std::uint32_t word, int pair) {
  const std::uint32_t halves = pair == 0 ? half_pair_of<F, 0>(word) : half_pair_of<F, 1>(word);
  return {__uint_as_float(widen<format_id::fp16>(halves & 0xFFFFu)),
          __uint_as_float(widen<format_id::fp16>(halves >> 16))};
}

/// Op on the low halves and on the high halves, each rounded to nearest even.
template <operation Op>
__device__ __forceinline__ std::uint32_t half_step(std::uint32_t a, std::uint32_t b) {
  std::uint32_t r;
  if constexpr (Op == operation::add) {
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else if constexpr (Op == operation::sub) {
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  } else {
    static_assert(Op == operation::mul);
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  }
  return r;
}

/// A mask: FFFF in each half whose magnitude is at least `minimum`, a binary16 code; 0 in each
/// other half and for NaN.
__device__ __forceinline__ std::uint32_t halves_from(std::uint32_t x, std::uint32_t minimum) {
  std::uint32_t mask;
  asm("set.ge.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(x & 0x7FFF7FFFu), "r"(minimum * 0x10001u));
  return mask;
}

/// Rounds two binary16 numbers to FP8 codes. The low half's code is in the low byte. Overflow
/// saturates, NaN gives 7F.
template <format_id F>
__device__ __forceinline__ std::uint32_t fp8_of_halves(std::uint32_t x) {
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  if constexpr (F == format_id::e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(pair) : "r"(x));
  } else {
    static_assert(F == format_id::e5m2);
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(pair) : "r"(x));
  }
  return pair;
#else
  return 0;    // why_not_native() keeps older GPUs away
#endif
}

}  // namespace samebits::cuda
