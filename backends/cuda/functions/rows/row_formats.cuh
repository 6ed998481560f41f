// Row formats: how kernels of rows compute, and how they turn codes into numbers and back.
#pragma once

#include <cstdint>
#include <type_traits>

#include "backends/cuda/functions/definition_steps.cuh"
#include "backends/cuda/functions/instruction_steps.cuh"
#include "backends/cuda/functions/rows/row_operands.cuh"
#include "backends/cuda/functions/step_word.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// The largest number of codes; NaNs do not count. -Inf if there is no number. Of zeros of both signs:
/// either.
template <class Numbers>
struct largest_number {
  typename Numbers::word number = numerics::binary32::sign_bit | numerics::binary32::inf;

  template <int E>
  __device__ __forceinline__ void take(const Numbers& numbers,
                                       const row_codes<Numbers::bytes, E>& x) {
#pragma unroll
    for (int i = 0; i < E; ++i) number = larger(number, numbers.value(x.code(i)));
  }
  [[nodiscard]] __device__ __forceinline__ typename Numbers::word value() const { return number; }
};

/// The same of 16-bit codes, two at once.
template <class Numbers, format_id Format>
struct largest_pair {
  std::uint32_t pair = Format == format_id::bf16 ? 0xFF80FF80u : 0xFC00FC00u;  // -Inf

  template <int E>
  __device__ __forceinline__ void take(const Numbers&, const row_codes<2, E>& x) {
    if constexpr (E == 1) {
      join(x.w[0] * 0x10001u);
    } else {
#pragma unroll
      for (int i = 0; i < E / 2; ++i) join(x.w[i]);
    }
  }
  [[nodiscard]] __device__ __forceinline__ typename Numbers::word value() const {
    return larger(Numbers::value(pair & 0xFFFFu), Numbers::value(pair >> 16));
  }

 private:
  __device__ __forceinline__ void join(std::uint32_t x) {
    if constexpr (Format == format_id::bf16) {
      asm("max.bf16x2 %0, %0, %1;" : "+r"(pair) : "r"(x));
    } else {
      asm("max.f16x2 %0, %0, %1;" : "+r"(pair) : "r"(x));
    }
  }
};

/// Integer steps, for every format.
struct definition_rows {
  using word = step_word<definition_steps>;
  static constexpr bool compiled = true;
  static constexpr bool native = false;
  static constexpr int bytes = 0;   ///< known at run time
  static constexpr int vector = 1;  ///< integer steps load one element at a time
  using largest = largest_number<definition_rows>;
  format_id format;

  __device__ explicit definition_rows(format_id f) : format(f) {}
  [[nodiscard]] __device__ word value(std::uint32_t code) const {
    return numerics::torch_2_11::value_of<word>(format, code);
  }
  [[nodiscard]] __device__ word stored(word x) const {
    return numerics::torch_2_11::stored<word>(format, x);
  }
  [[nodiscard]] __device__ std::uint32_t code(word x) const {
    return numerics::torch_2_11::code_of<word>(format, x).bits;
  }
  [[nodiscard]] __device__ row_codes<bytes, 1> codes(const word (&y)[1]) const {
    return {code(y[0])};
  }
  /// Divides by a number.
  struct divisor {
    word number;

    __device__ explicit divisor(word x) : number(x) {}
    template <int Count>
    __device__ void divide(word (&y)[Count]) const {
      for (int i = 0; i < Count; ++i) y[i] = div(y[i], number);
    }
  };
};

/// The GPU's instructions. Kernels for other architectures than those of instruction_steps are
/// empty, and never launched (units_hold() in functions.hpp).
template <format_id Format>
struct instruction_rows {
#if defined(SAMEBITS_HOPPER_UNITS)
  using word = step_word<instruction_steps>;
  static constexpr bool compiled = true;
#else
  using word = step_word<definition_steps>;
  static constexpr bool compiled = false;
#endif
  static constexpr bool native = true;
  static constexpr int bytes = storage_bytes(Format);
  static constexpr int vector = 16 / bytes;  ///< elements that PyTorch's threads add at once
  using largest = std::conditional_t<bytes == 2, largest_pair<instruction_rows, Format>,
                                     largest_number<instruction_rows>>;

  __device__ explicit instruction_rows(format_id) {}
  [[nodiscard]] static __device__ __forceinline__ word value(std::uint32_t code) {
    return widen<Format>(code);
  }
  /// A NaN that an instruction returned is the canonical NaN of fp32.
  [[nodiscard]] static __device__ __forceinline__ std::uint32_t code(word x) {
    if constexpr (Format == format_id::fp32) {
      return x.bits;
    } else {
      return half_pair<Format, false>(x.bits, 0) & 0xFFFFu;
    }
  }
  template <int E>
  [[nodiscard]] static __device__ __forceinline__ row_codes<bytes, E> codes(const word (&y)[E]) {
    row_codes<bytes, E> x;
    if constexpr (E == 1 || bytes == 4) {
#pragma unroll
      for (int i = 0; i < E; ++i) x.w[i] = code(y[i]);
    } else {
#pragma unroll
      for (int i = 0; i < E; i += 2)
        x.w[i / 2] = half_pair<Format, false>(y[i].bits, y[i + 1].bits);
    }
    return x;
  }
  [[nodiscard]] static __device__ __forceinline__ word stored(word x) {
    if constexpr (Format == format_id::bf16) return half_pair<Format, false>(0, x.bits);
    return value(code(x));
  }

  /// Divides numbers from 0 to 1 by a number from 1 on; any may be NaNs. What codes() makes of a
  /// quotient has the bits of one that was rounded to binary32 first.
  struct divisor {
    float number, reciprocal, rest;  ///< 1 / number = reciprocal + rest

    __device__ __forceinline__ explicit divisor(word x) {
      number = __uint_as_float(x.bits);
      reciprocal = __frcp_rn(number);
      rest = __fmul_rn(__fmaf_rn(-reciprocal, number, 1.0f), reciprocal);
    }
    /// Whether divide_usual() may divide by this number.
    ///
    /// 16 bits: y * reciprocal + y * rest is within 2^-46 of the quotient y / number, relatively. Its
    /// rounding to binary32, and then to the format of t bits, may be wrong only if the quotient is
    /// that close to P +- half an ulp, where P lies midway between two numbers of the format. With
    /// significands E of y, S of the number and p of P, E * 2^k - S * p is a whole number, and would
    /// be within 2^(t - 20) of +-S * 2^(t - 24): then S is within 16 of a multiple of 2^(24 - t).
    /// The number is below 2^22, so that y * rest does not underflow.
    [[nodiscard]] __device__ __forceinline__ bool is_usual() const {
      if constexpr (bytes == 4) return true;
      constexpr std::uint32_t low_bits = Format == format_id::bf16 ? 0xFFFFu : 0x1FFFu;
      return ((__float_as_uint(number) + 16u) & low_bits) > 32u && number < 4194304.0f;
    }
    /// Requires is_usual(), and that y is 0 or not small.
    ///
    /// fp32, by Markstein's method: the reciprocal is rounded to nearest, the second quotient is
    /// within an ulp, so the third is rounded to nearest if no remainder underflows, or y is 0.
    template <int Count>
    __device__ __forceinline__ void divide_usual(word (&y)[Count]) const {
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        const float x = __uint_as_float(y[i].bits);
        float quotient;
        if constexpr (bytes == 4) {
          const float first = __fmul_rn(x, reciprocal);
          const float second = __fmaf_rn(__fmaf_rn(-first, number, x), reciprocal, first);
          quotient = __fmaf_rn(__fmaf_rn(-second, number, x), reciprocal, second);
        } else {
          quotient = __fmaf_rn(x, reciprocal, __fmul_rn(x, rest));
        }
        y[i] = __float_as_uint(quotient);
      }
    }
    /// Whether products or remainders of one of these numbers may underflow.
    template <int Count>
    [[nodiscard]] static __device__ __forceinline__ bool is_small(const word (&y)[Count]) {
      constexpr std::uint32_t exact = 0x17800000;  // 2^-80
      std::uint32_t least = 0xFFFFFFFFu;
#pragma unroll
      for (int i = 0; i < Count; ++i) least = min(least, y[i].bits - 1u);  // 0 is the largest
      return least < exact - 1u;
    }
    template <int Count>
    __device__ __forceinline__ void divide_other(word (&y)[Count]) const {
#pragma unroll
      for (int i = 0; i < Count; ++i) {
        y[i] = __float_as_uint(__fdiv_rn(__uint_as_float(y[i].bits), number));
      }
    }
    template <int Count>
    __device__ __forceinline__ void divide(word (&y)[Count]) const {
      if (!is_usual() || is_small(y)) {
        divide_other(y);
      } else {
        divide_usual(y);
      }
    }
  };
};

/// 16-bit operands that are added as fp32 is, and whose intermediate numbers stay fp32.
template <class Numbers>
struct upcast_rows : Numbers {
  static constexpr int vector = 4;
  using Numbers::Numbers;
  [[nodiscard]] __device__ typename Numbers::word stored(typename Numbers::word x) const {
    return x;
  }
};

}  // namespace samebits::cuda
