// Operations on 32-bit words of codes of one format, by the GPU's binary32 and binary16
// instructions, rounded to nearest even. docs/decisions/0026 proves that the results are those of
// the definition.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/half_pairs.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::cuda {

/// Minimum or maximum of two numbers; -0 is less than +0 (PTX ISA, min and max). A NaN result is
/// canonical.
template <operation Op>
__device__ __forceinline__ float chosen(float a, float b) {
  float r;
  if constexpr (Op == operation::min) {
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  } else if constexpr (Op == operation::max) {
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  } else if constexpr (Op == operation::min_num) {
    asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  } else {
    static_assert(Op == operation::max_num);
    asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  }
  return r;
}

/// One operation in binary32, rounded to nearest even.
template <operation Op>
__device__ __forceinline__ float float_step(float a, float b, float c) {
  if constexpr (Op == operation::add) {
    return __fadd_rn(a, b);
  } else if constexpr (Op == operation::sub) {
    return __fsub_rn(a, b);
  } else if constexpr (Op == operation::mul) {
    return __fmul_rn(a, b);
  } else if constexpr (Op == operation::div) {
    return __fdiv_rn(a, b);
  } else if constexpr (Op == operation::sqrt) {
    return __fsqrt_rn(a);
  } else if constexpr (Op == operation::fma) {
    return __fmaf_rn(a, b, c);
  } else {
    return chosen<Op>(a, b);
  }
}

/// a * b + c rounded to odd: of the two neighbours of the exact sum, the one whose last bit is 1.
/// For an exact sum both neighbours are the sum itself. An exact zero is even both ways, and
/// `above` has the sign of rounding to nearest.
__device__ __forceinline__ float fused_to_odd(float a, float b, float c) {
  const float below = __fmaf_rd(a, b, c);
  const float above = __fmaf_ru(a, b, c);
  return (__float_as_uint(below) & 1) != 0 ? below : above;
}

/// A binary32 result that, rounded into F, gives the rounded exact result.
template <operation Op, format_id F>
__device__ __forceinline__ float wide_step(float a, float b, float c) {
  if constexpr (Op == operation::fma && F != format_id::e4m3 && F != format_id::fp32) {
    return fused_to_odd(a, b, c);
  } else {
    return float_step<Op>(a, b, c);
  }
}

/// Whether an operation in F is computed on pairs of binary16 numbers.
SAMEBITS_INLINE constexpr bool is_by_halves(operation op, format_id f) {
  return (f == format_id::e4m3 || f == format_id::e5m2) &&
         (op == operation::add || op == operation::sub || op == operation::mul);
}

/// The fp32 code of a result; under overflow::saturate Inf becomes max finite.
template <overflow Policy>
__device__ __forceinline__ std::uint32_t fp32_code(float x) {
  if constexpr (Policy == overflow::saturate) {
    constexpr float max = 0x1.FFFFFEp127f;
    x = chosen<operation::max>(chosen<operation::min>(x, max), -max);
  }
  return __float_as_uint(x);
}

/// Makes the NaN of a division or square root canonical. Both are routines of several instructions,
/// whose NaNs may differ.
template <operation Op>
__device__ __forceinline__ float with_canonical_nan(float x) {
  if constexpr (Op == operation::div || Op == operation::sqrt) {
    return x == x ? x : __uint_as_float(0x7FFFFFFFu);
  } else {
    return x;
  }
}

/// Rounds four binary32 numbers to FP8 codes, under the overflow policy. Requires numbers that
/// round into F as the exact results.
template <format_id F, overflow Policy>
__device__ __forceinline__ std::uint32_t fp8_word(const float (&x)[4]) {
  float y[4];
  std::uint32_t beyond = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    y[i] = x[i];
    if constexpr (Policy == overflow::ieee && F == format_id::e4m3) {
      y[i] = fabsf(x[i]) > 464.0f ? __uint_as_float(0x7FFFFFFFu) : x[i];
    } else if constexpr (Policy == overflow::ieee) {
      beyond |= fabsf(x[i]) >= 61440.0f ? 7u << (8 * i) : 0;
    }
  }
  const std::uint32_t low = fp8_pair<F>(__float_as_uint(y[0]), __float_as_uint(y[1]));
  const std::uint32_t high = fp8_pair<F>(__float_as_uint(y[2]), __float_as_uint(y[3]));
  return (low | high << 16) ^ beyond;  // 7B (max finite) becomes 7C (Inf)
}
/// Rounds two pairs of binary16 numbers to four FP8 codes, under the overflow policy.
template <format_id F, overflow Policy>
__device__ __forceinline__ std::uint32_t fp8_word(std::uint32_t low, std::uint32_t high) {
  std::uint32_t beyond = 0;
  if constexpr (Policy == overflow::ieee && F == format_id::e4m3) {
    constexpr std::uint32_t above_464 = 0x5F41;
    const auto unless_beyond = [](std::uint32_t x) {
      const std::uint32_t beyond_464 = halves_from(x, above_464);
      return (x & ~beyond_464) | (beyond_464 & 0x7FFF7FFFu);  // a NaN
    };
    low = unless_beyond(low);
    high = unless_beyond(high);
  } else if constexpr (Policy == overflow::ieee) {
    constexpr std::uint32_t from_61440 = 0x7B80;
    const std::uint32_t masks =
        __byte_perm(halves_from(low, from_61440), halves_from(high, from_61440), 0x6420);
    beyond = masks & 0x07070707u;
  }
  return (fp8_of_halves<F>(low) | fp8_of_halves<F>(high) << 16) ^ beyond;
}

/// One operation on all codes of a word: four 8-bit codes, two 16-bit codes or one 32-bit code.
template <operation Op, format_id F, overflow Policy>
struct word_step {
  static constexpr int width = spec_of(F).storage_bits / 8;
  static constexpr int operands = operand_count(Op);

  __device__ __forceinline__ static std::uint32_t of(std::uint32_t a, std::uint32_t b,
                                                     std::uint32_t c) {
    if constexpr (F == format_id::fp32) {
      const float r = float_step<Op>(__uint_as_float(a), __uint_as_float(b), __uint_as_float(c));
      return fp32_code<Policy>(with_canonical_nan<Op>(r));
    } else if constexpr (width == 2) {
      const auto half = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
        return __float_as_uint(wide_step<Op, F>(__uint_as_float(widen<F>(x)),
                                                __uint_as_float(widen<F>(y)),
                                                __uint_as_float(widen<F>(z))));
      };
      return half_pair<F, Policy == overflow::saturate>(half(a & 0xFFFFu, b & 0xFFFFu, c & 0xFFFFu),
                                                        half(a >> 16, b >> 16, c >> 16));
    } else if constexpr (is_by_halves(Op, F)) {
      return fp8_word<F, Policy>(half_step<Op>(half_pair_of<F, 0>(a), half_pair_of<F, 0>(b)),
                                 half_step<Op>(half_pair_of<F, 1>(a), half_pair_of<F, 1>(b)));
    } else {
      float x[4];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const float2 u = float_pair_of<F>(a, pair);
        const float2 v = operands > 1 ? float_pair_of<F>(b, pair) : u;
        const float2 w = operands > 2 ? float_pair_of<F>(c, pair) : u;
        x[2 * pair] = wide_step<Op, F>(u.x, v.x, w.x);
        x[2 * pair + 1] = wide_step<Op, F>(u.y, v.y, w.y);
      }
      return fp8_word<F, Policy>(x);
    }
  }
};

}  // namespace samebits::cuda
