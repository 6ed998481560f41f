// FP8 conversion instructions (PTX ISA, cvt): two binary32 numbers to two codes, and back.
#pragma once

#include <cstdint>

#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// Rounds a and b, binary32 bits, to two FP8 codes, to nearest even. a's code is in the low byte.
/// Overflow saturates, NaN gives 7F.
template <format_id To>
__device__ __forceinline__ std::uint32_t fp8_pair(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 890
  unsigned short pair;
  if constexpr (To == format_id::e4m3) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(pair)
        : "f"(__uint_as_float(b)), "f"(__uint_as_float(a)));
  } else {
    static_assert(To == format_id::e5m2);
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;"
        : "=h"(pair)
        : "f"(__uint_as_float(b)), "f"(__uint_as_float(a)));
  }
  return pair;
#else
  return 0;   // why_not_native() keeps older GPUs away
#endif
}

/// Corrects `code`, the saturated FP8 code of the binary32 bits x, to overflow::ieee.
template <format_id To>
__device__ __forceinline__ std::uint32_t unsaturated(std::uint32_t x, std::uint32_t code) {
  const std::uint32_t magnitude = x & 0x7FFFFFFFu;
  if constexpr (To == format_id::e4m3) {
    return magnitude > 0x43E80000u ? 0x7Fu : code;  // above 464, or NaN
  } else {
    const bool beyond = magnitude >= 0x47700000u && magnitude <= 0x7F800000u;  // from 61440 to Inf
    return beyond ? code + 1 : code;  // 7B becomes 7C; the sign stays
  }
}

/// The values of two FP8 codes; x is the value of the low byte.
template <format_id From>
__device__ __forceinline__ float2 fp8_values(std::uint16_t pair) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t halves;
  if constexpr (From == format_id::e4m3) {
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
  } else {
    static_assert(From == format_id::e5m2);
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
  }
  float2 values;
  asm("cvt.f32.f16 %0, %1;" : "=f"(values.x) : "h"(static_cast<unsigned short>(halves)));
  asm("cvt.f32.f16 %0, %1;" : "=f"(values.y) : "h"(static_cast<unsigned short>(halves >> 16)));
  return values;
#else
  return {};  // why_not_native() keeps older GPUs away
#endif
}

}  // namespace samebits::cuda
