// Conversion instructions between binary32 and 16-bit formats (PTX ISA, cvt), rounding to nearest
// even.
#pragma once

#include <cstdint>

#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// The value of a code, as binary32 bits. A NaN may keep its payload.
template <format_id From>
__device__ __forceinline__ std::uint32_t widen(std::uint32_t code) {
  if constexpr (From == format_id::fp32) {
    return code;
  } else if constexpr (From == format_id::bf16) {
    return code << 16;
  } else {
    static_assert(From == format_id::fp16);
    float f;
    const auto half = static_cast<unsigned short>(code);
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half));
    return __float_as_uint(f);
  }
}

/// Rounds a and b, binary32 bits, to two 16-bit codes. a's code is in the low half. NaN gives 7FFF,
/// overflow Inf, or max finite if Saturate.
template <format_id To, bool Saturate>
__device__ __forceinline__ std::uint32_t half_pair(std::uint32_t a, std::uint32_t b) {
  std::uint32_t pair;
  const float x = __uint_as_float(a), y = __uint_as_float(b);
  if constexpr (To == format_id::fp16) {
    if constexpr (Saturate) {
      asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    } else {
      asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    }
  } else {
    static_assert(To == format_id::bf16);
    if constexpr (Saturate) {
      asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    } else {
      asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    }
  }
  return pair;
}

}  // namespace samebits::cuda
