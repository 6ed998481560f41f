// Maxima of magnitudes, as codes without sign, over a thread's rows, columns and tiles.
//
// An integer maximum of codes gives the amax of finite elements. If any element of a block tile is
// NaN or Inf, the maxima are computed again with amax_code(), which applies the non-finite
// policy.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/tile_task.cuh"
#include "numerics/bits/decode.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {

/// The code of Inf. Greater codes without sign are NaN.
template <format_id From>
inline constexpr auto inf_magnitude = static_cast<std::uint32_t>(numerics::inf_code(spec_of(From)));

/// The smaller magnitude of two 16-bit codes, in each half of a word. The result's sign bits are
/// arbitrary. No input is NaN.
template <format_id From>
__device__ __forceinline__ std::uint32_t smaller_magnitudes(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t minimum;
  if constexpr (From == format_id::bf16) {
    asm("min.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(minimum) : "r"(a), "r"(b));
  } else {
    static_assert(From == format_id::fp16);
    asm("min.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(minimum) : "r"(a), "r"(b));
  }
  return minimum;
#else
  return 0;  // why_not_native() keeps older GPUs away
#endif
}

/// The amax contribution of one element: its code without sign, plus one; 0 if the non-finite
/// policy skips the element (numerics::amax_contribution) or the element lies outside the matrix.
template <format_id From>
__device__ __forceinline__ std::uint32_t amax_code(const tile_task& t, std::uint32_t code,
                                                   std::uint64_t row, std::uint32_t col) {
  const nonfinite policy = t.scale.nonfinite;
  const bool counts = code < inf_magnitude<From> || policy == nonfinite::propagate ||
                      (policy != nonfinite::skip_nonfinite && code == inf_magnitude<From>);
  return counts && row < t.rows && col < t.cols ? code + 1 : 0;
}

/// The larger magnitude of two 16-bit codes, in each half of a word. The result's sign bits are
/// arbitrary. NaN is greater than every number.
template <format_id From>
__device__ __forceinline__ std::uint32_t larger_magnitudes(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t maximum;
  if constexpr (From == format_id::bf16) {
    asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(maximum) : "r"(a), "r"(b));
  } else {
    static_assert(From == format_id::fp16);
    asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(maximum) : "r"(a), "r"(b));
  }
  return maximum;
#else
  return 0;  // why_not_native() keeps older GPUs away
#endif
}

/// The maximum magnitude of each row of a thread's vectors, as codes of the input format. For
/// 16-bit formats one word holds the maxima of two rows.
template <format_id From, int Rows>
struct row_maxima {
  static constexpr bool paired = spec_of(From).storage_bits == 16;
  static constexpr int words = paired ? Rows / 2 : Rows;
  static constexpr std::uint32_t magnitude = (1u << (spec_of(From).storage_bits - 1)) - 1;
  std::uint32_t w[words];

  /// Maxima over all elements: the amax if every element is finite, else Inf or above.
  __device__ __forceinline__ explicit row_maxima(const vector8<From> (&x)[Rows]) {
    std::uint32_t maximum[Rows];
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      if constexpr (paired) {
        maximum[i] = larger_magnitudes<From>(larger_magnitudes<From>(x[i].w[0], x[i].w[1]),
                                             larger_magnitudes<From>(x[i].w[2], x[i].w[3])) &
                     0x7FFF7FFFu;
      } else {
        maximum[i] = 0;
#pragma unroll
        for (const std::uint32_t code : x[i].w) maximum[i] = max(maximum[i], code & magnitude);
      }
    }
    if constexpr (paired) {
#pragma unroll
      for (int i = 0; i < words; ++i) {
        w[i] = __vmaxu2(__byte_perm(maximum[2 * i], maximum[2 * i + 1], 0x5410),
                        __byte_perm(maximum[2 * i], maximum[2 * i + 1], 0x7632));
      }
    } else {
#pragma unroll
      for (int i = 0; i < words; ++i) w[i] = maximum[i];
    }
  }
  /// Maxima of amax_code(), for block tiles with NaN or Inf. (row, col) is the first element.
  __device__ __forceinline__ row_maxima(const vector8<From> (&x)[Rows], const tile_task& t,
                                        std::uint64_t row, std::uint32_t col) {
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      std::uint32_t maximum = 0;
#pragma unroll
      for (int k = 0; k < vector_length; ++k) {
        maximum = max(maximum, amax_code<From>(t, x[i].code(k) & magnitude, row + i, col + k));
      }
      if constexpr (paired) {
        w[i / 2] = i % 2 == 0 ? maximum : w[i / 2] | maximum << 16;
      } else {
        w[i] = maximum;
      }
    }
  }
  /// Combines the maxima of 2^log2 neighbouring lanes.
  __device__ __forceinline__ void combine_lanes(int log2) {
    for (int apart = 1 << log2 >> 1; apart > 0; apart >>= 1) {
#pragma unroll
      for (std::uint32_t& word : w) {
        const std::uint32_t other = __shfl_xor_sync(all_lanes, word, apart);
        word = paired ? __vmaxu2(word, other) : max(word, other);
      }
    }
  }
  /// The maximum of one row; `row` may differ among lanes.
  __device__ __forceinline__ std::uint32_t of_row(unsigned row) const {
    std::uint32_t word = w[0];
#pragma unroll
    for (int i = 1; i < words; ++i) {
      if ((paired ? row / 2 : row) == static_cast<unsigned>(i)) word = w[i];
    }
    if constexpr (!paired) return word;
    return row % 2 != 0 ? word >> 16 : word & 0xFFFFu;
  }
  /// Whether any element is NaN or Inf. Only for maxima over all elements, not for amax_code().
  __device__ __forceinline__ bool reaches_inf() const { return of_all() >= inf_magnitude<From>; }
  /// The maximum over all rows.
  __device__ __forceinline__ std::uint32_t of_all() const {
    std::uint32_t maximum = w[0];
#pragma unroll
    for (const std::uint32_t word : w)
      maximum = paired ? __vmaxu2(maximum, word) : max(maximum, word);
    return paired ? max(maximum >> 16, maximum & 0xFFFFu) : maximum;
  }
};

/// The maximum magnitude of each of a thread's 8 columns over its rows, as codes of the input
/// format.
template <format_id From>
struct column_maxima {
  static constexpr bool paired = spec_of(From).storage_bits == 16;
  vector8<From> maximum{};

  /// Maxima over all elements: the amax if every element is finite, else Inf or above.
  template <int Rows>
  __device__ __forceinline__ explicit column_maxima(const vector8<From> (&x)[Rows]) {
#pragma unroll
    for (int k = 0; k < vector8<From>::words; ++k) {
      maximum.w[k] = x[0].w[k];
#pragma unroll
      for (int i = 1; i < Rows; ++i) {
        if constexpr (paired) {
          maximum.w[k] = larger_magnitudes<From>(maximum.w[k], x[i].w[k]);
        } else {
          maximum.w[k] = max(maximum.w[k] & 0x7FFFFFFFu, x[i].w[k] & 0x7FFFFFFFu);
        }
      }
      maximum.w[k] &= paired ? 0x7FFF7FFFu : 0x7FFFFFFFu;
    }
  }
  /// Maxima of amax_code(), for block tiles with NaN or Inf. (row, col) is the first element.
  template <int Rows>
  __device__ __forceinline__ column_maxima(const vector8<From> (&x)[Rows], const tile_task& t,
                                           std::uint64_t row, std::uint32_t col) {
#pragma unroll
    for (int c = 0; c < vector_length; ++c) {
      std::uint32_t of_column = 0;
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        const std::uint32_t code = x[i].code(c) & row_maxima<From, Rows>::magnitude;
        of_column = max(of_column, amax_code<From>(t, code, row + i, col + c));
      }
      maximum.set(c, of_column);
    }
  }
  __device__ __forceinline__ bool reaches_inf() const {
    bool any = false;
#pragma unroll
    for (int c = 0; c < vector_length; ++c) any |= maximum.code(c) >= inf_magnitude<From>;
    return any;
  }
};

/// The maximum magnitude of a tile.
struct tile_maximum {
  std::uint32_t code;
  bool plus_one;  ///< code is a maximum of amax_code(), 1 above the magnitude
  bool finite;    ///< whether every element is finite

  template <format_id From>
  __device__ __forceinline__ tile_amax amax() const {
    if (plus_one && code == 0) return numerics::no_amax;
    return static_cast<tile_amax>(
        numerics::decode<std::uint32_t>(spec_of(From), code - (plus_one ? 1 : 0)));
  }
};

}  // namespace samebits::cuda
