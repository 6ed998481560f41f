// The FP8 conversion instruction (PTX ISA, cvt): binary32 to two codes.
#pragma once

#include <cstdint>

#include "samebits/format.hpp"

namespace samebits::cuda {

/// Two FP8 codes, a in the low byte; saturating, NaN gives 7F.
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
  return 0;  // native_supported() keeps older GPUs away from here
#endif
}

}  // namespace samebits::cuda
