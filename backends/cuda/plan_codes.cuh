// Eight neighbouring elements of a tensor as binary32, from and to 32 bytes or less.
#pragma once

#include <cstdint>

#include "backends/cuda/hardware.cuh"
#include "backends/cuda/native/fp8.cuh"
#include "backends/cuda/native/halves.cuh"
#include "samebits/format.hpp"

namespace samebits::cuda {

/// The GPU's binary32 steps, for numerics/plan_ops.hpp.
struct hardware_steps {
  SAMEBITS_INLINE static std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    return hardware::product(a, b);
  }
  SAMEBITS_INLINE static std::uint32_t sum(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    return __float_as_uint(__fadd_rn(__uint_as_float(a), __uint_as_float(b)));
#else
    return numerics::binary32_steps::sum(a, b);
#endif
  }
};

/// A format as a constant.
template <format_id F>
struct fixed {
  static constexpr format_id value = F;
};

inline constexpr int octet = 8;

/// Binary32 bits. A NaN may keep its payload: every step that follows makes it canonical.
struct octet_values {
  std::uint32_t x[octet];
};

/// p is aligned to 16 bytes, of FP8 to 8.
template <format_id F>
__device__ __forceinline__ octet_values load_octet(const std::byte* p) {
  octet_values v;
  if constexpr (F == format_id::fp32) {
    const uint4 a = reinterpret_cast<const uint4*>(p)[0], b = reinterpret_cast<const uint4*>(p)[1];
    v.x[0] = a.x, v.x[1] = a.y, v.x[2] = a.z, v.x[3] = a.w;
    v.x[4] = b.x, v.x[5] = b.y, v.x[6] = b.z, v.x[7] = b.w;
  } else if constexpr (spec_of(F).storage_bits == 16) {
    const uint4 a = *reinterpret_cast<const uint4*>(p);
    const std::uint32_t pairs[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      v.x[2 * i] = widen<F>(pairs[i] & 0xFFFFu);
      v.x[2 * i + 1] = widen<F>(pairs[i] >> 16);
    }
  } else {
    const uint2 a = *reinterpret_cast<const uint2*>(p);
    const std::uint32_t words[2] = {a.x, a.y};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = fp8_values<F>(static_cast<std::uint16_t>(words[i / 2] >> (i % 2 * 16)));
      v.x[2 * i] = __float_as_uint(pair.x);
      v.x[2 * i + 1] = __float_as_uint(pair.y);
    }
  }
  return v;
}

/// As fp32, fp16 or bf16 codes, rounded to nearest even, overflow to Inf, canonical NaN; values
/// must have come from a binary32 step. Returns how many codes are not finite.
template <format_id F>
__device__ __forceinline__ std::uint32_t store_octet(std::byte* p, const octet_values& v) {
  std::uint32_t nonfinite = 0;
  if constexpr (F == format_id::fp32) {
    reinterpret_cast<uint4*>(p)[0] = make_uint4(v.x[0], v.x[1], v.x[2], v.x[3]);
    reinterpret_cast<uint4*>(p)[1] = make_uint4(v.x[4], v.x[5], v.x[6], v.x[7]);
#pragma unroll
    for (int i = 0; i < octet; ++i) nonfinite += (v.x[i] & 0x7FFFFFFFu) >= 0x7F800000u ? 1 : 0;
  } else {
    constexpr std::uint32_t inf = F == format_id::fp16 ? 0x7C00u : 0x7F80u;
    std::uint32_t pairs[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      pairs[i] = half_pair<F, false>(v.x[2 * i], v.x[2 * i + 1]);
      nonfinite += (pairs[i] & 0x7FFFu) >= inf ? 1 : 0;
      nonfinite += (pairs[i] >> 16 & 0x7FFFu) >= inf ? 1 : 0;
    }
    *reinterpret_cast<uint4*>(p) = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
  }
  return nonfinite;
}

}  // namespace samebits::cuda
