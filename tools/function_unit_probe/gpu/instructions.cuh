// The instructions of the function unit probe, one PTX instruction each.
#pragma once

#include <cstdint>

#include "function_unit_probe/device.hpp"

namespace samebits::cuda {

// The operand is `x`: a float f, two 16-bit numbers, or one in the low half h.
#define SAMEBITS_F32(ptx)                                    \
  {                                                          \
    float y;                                                 \
    asm(ptx " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x))); \
    return __float_as_uint(y);                               \
  }
#define SAMEBITS_B32(ptx)                   \
  {                                         \
    std::uint32_t y;                        \
    asm(ptx " %0, %1;" : "=r"(y) : "r"(x)); \
    return y;                               \
  }
#define SAMEBITS_B16(ptx)                                               \
  {                                                                     \
    std::uint16_t y;                                                    \
    asm(ptx " %0, %1;" : "=h"(y) : "h"(static_cast<std::uint16_t>(x))); \
    return y;                                                           \
  }

/// The result of an instruction at x, both in the instruction's format. Instructions of bf16 need
/// compute capability 9.0. In kernels compiled for older ones they return 0 and are never called:
/// capability() in device.cu is at most that of the kernels.
template <function_units::instruction What>
__device__ std::uint32_t result_of(std::uint32_t x) {
  using enum function_units::instruction;
  if constexpr (What == ex2_ftz) SAMEBITS_F32("ex2.approx.ftz.f32")
  if constexpr (What == ex2) SAMEBITS_F32("ex2.approx.f32")
  if constexpr (What == lg2_ftz) SAMEBITS_F32("lg2.approx.ftz.f32")
  if constexpr (What == lg2) SAMEBITS_F32("lg2.approx.f32")
  if constexpr (What == rcp_ftz) SAMEBITS_F32("rcp.approx.ftz.f32")
  if constexpr (What == rcp) SAMEBITS_F32("rcp.approx.f32")
  if constexpr (What == rsqrt_ftz) SAMEBITS_F32("rsqrt.approx.ftz.f32")
  if constexpr (What == rsqrt) SAMEBITS_F32("rsqrt.approx.f32")
  if constexpr (What == sqrt_ftz) SAMEBITS_F32("sqrt.approx.ftz.f32")
  if constexpr (What == sqrt) SAMEBITS_F32("sqrt.approx.f32")
  if constexpr (What == sin_ftz) SAMEBITS_F32("sin.approx.ftz.f32")
  if constexpr (What == cos_ftz) SAMEBITS_F32("cos.approx.ftz.f32")
  if constexpr (What == tanh) SAMEBITS_F32("tanh.approx.f32")
  if constexpr (What == ex2_f16) SAMEBITS_B16("ex2.approx.f16")
  if constexpr (What == ex2_f16x2) SAMEBITS_B32("ex2.approx.f16x2")
  if constexpr (What == tanh_f16) SAMEBITS_B16("tanh.approx.f16")
  if constexpr (What == tanh_f16x2) SAMEBITS_B32("tanh.approx.f16x2")
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (What == ex2_ftz_bf16) SAMEBITS_B16("ex2.approx.ftz.bf16")
  if constexpr (What == ex2_ftz_bf16x2) SAMEBITS_B32("ex2.approx.ftz.bf16x2")
  if constexpr (What == tanh_bf16) SAMEBITS_B16("tanh.approx.bf16")
  if constexpr (What == tanh_bf16x2) SAMEBITS_B32("tanh.approx.bf16x2")
#endif
  return 0;
}
#undef SAMEBITS_F32
#undef SAMEBITS_B32
#undef SAMEBITS_B16

}  // namespace samebits::cuda
