// Instruction steps: the steps and function units of step_word by the GPU's instructions, for
// cuda-native on GPUs whose units were compared with the model (units_hold() in functions.hpp).
#pragma once

#include <cstdint>

#include "backends/cuda/functions/definition_steps.cuh"
#include "samebits/core/config.hpp"

namespace samebits::cuda {

// Whether this pass compiles code for a GPU whose units are those of the model: compute capability
// 9.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
#define SAMEBITS_HOPPER_UNITS

/// Operands and results are binary32 bits or integers, as in steps.hpp. The intrinsics round as
/// their names say, whatever the compiler's flags are, and no compiler fuses them.
struct instruction_steps {
  using word = std::uint32_t;

  SAMEBITS_INLINE static float number(word a) { return __uint_as_float(a); }
  SAMEBITS_INLINE static word bits(float a) { return __float_as_uint(a); }

  SAMEBITS_INLINE static word fma(word a, word b, word c) {
    return bits(__fmaf_rn(number(a), number(b), number(c)));
  }
  SAMEBITS_INLINE static word fma_down(word a, word b, word c) {
    return bits(__fmaf_rd(number(a), number(b), number(c)));
  }
  SAMEBITS_INLINE static word mul(word a, word b) { return bits(__fmul_rn(number(a), number(b))); }
  SAMEBITS_INLINE static word add(word a, word b) { return bits(__fadd_rn(number(a), number(b))); }
  SAMEBITS_INLINE static word add_rz(word a, word b) {
    return bits(__fadd_rz(number(a), number(b)));
  }
  SAMEBITS_INLINE static word div(word a, word b) { return bits(__fdiv_rn(number(a), number(b))); }
  SAMEBITS_INLINE static word sqrt(word a) { return bits(__fsqrt_rn(number(a))); }
  /// Requires a number, not a NaN. The compiler makes it part of an addition or a fused multiply-add
  /// that follows, which then costs no instruction more.
  SAMEBITS_INLINE static word neg(word a) { return bits(-number(a)); }
  SAMEBITS_INLINE static word saturate(word a) { return bits(__saturatef(number(a))); }
  SAMEBITS_INLINE static word nearest_whole(word a) { return bits(rintf(number(a))); }
  SAMEBITS_INLINE static word whole_toward_zero(word a) { return bits(truncf(number(a))); }
  SAMEBITS_INLINE static word whole_down(word a) { return bits(floorf(number(a))); }
  /// Operands of 2^31 or more give 2^31 - 1 instead of 0; no function uses these results.
  SAMEBITS_INLINE static word to_int(word a) {
    return static_cast<word>(__float2int_rz(number(a)));
  }
  SAMEBITS_INLINE static word from_int(word a) { return bits(__int2float_rn(static_cast<int>(a))); }
  SAMEBITS_INLINE static bool lt(word a, word b) { return number(a) < number(b); }
  SAMEBITS_INLINE static word larger(word a, word b) { return bits(fmaxf(number(a), number(b))); }

  SAMEBITS_INLINE static word ex2_approx_ftz(word a) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(number(a)));
    return bits(y);
  }
  SAMEBITS_INLINE static word ex2_approx(word a) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(number(a)));
    return bits(y);
  }
  SAMEBITS_INLINE static word lg2_approx(word a) {
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(number(a)));
    return bits(y);
  }
  SAMEBITS_INLINE static word rcp_approx_ftz(word a) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(number(a)));
    return bits(y);
  }
  SAMEBITS_INLINE static word rsqrt_approx_ftz(word a) {
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(number(a)));
    return bits(y);
  }
  SAMEBITS_INLINE static word rsqrt_approx(word a) {
    float y;
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(number(a)));
    return bits(y);
  }
  SAMEBITS_INLINE static auto large_angle(word a) { return definition_steps::large_angle(a); }
};

#endif

}  // namespace samebits::cuda
