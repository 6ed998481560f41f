// A thread's part of a matrix: rows of eight neighbouring elements, held in registers between
// finding the scales of their tiles and rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/codes.cuh"
#include "backends/cuda/convert_ops.cuh"
#include "backends/cuda/hardware.cuh"
#include "backends/cuda/launch.cuh"
#include "numerics/decode.hpp"
#include "numerics/encode.hpp"
#include "numerics/scale.hpp"
#include "numerics/tile.hpp"

namespace samebits::cuda {

using numerics::tile_amax;
using numerics::tile_scale;

/// Elements of a thread in a row: 16 bytes of 16-bit formats.
inline constexpr int strip = 8;

/// A quantization whose rows are contiguous; null pointers are outputs that are not wanted.
struct patch_task {
  const std::byte* in;
  std::byte* codes;
  std::byte* codes_transposed;
  std::byte* scales;
  std::byte* scales_transposed;
  const std::byte* multipliers;  ///< null unless scales are given
  std::uint64_t in_row_bytes, codes_row_bytes, transposed_row_bytes;
  std::uint64_t scales_row_bytes, scales_col_bytes;
  std::uint64_t scales_transposed_row_bytes, scales_transposed_col_bytes;
  std::uint64_t multipliers_row_bytes, multipliers_col_bytes;
  std::uint64_t rows;
  std::uint32_t cols;
  std::uint32_t col_blocks;  ///< blocks that stand side by side along the rows
  int lanes;                 ///< log2 of the threads of a block along a row
  int tile_rows, tile_cols;  ///< log2
  bool aligned;              ///< rows start at 16 bytes of input and 8 of codes, cols % 8 == 0
  bool aligned_transposed;   ///< rows start at 16 bytes
  bool by_definition;        ///< by defined_cast
  bool saturates;            ///< overflow::saturate: serves Inf, too
  bool byte_scales;          ///< e8m0; else fp32
  numerics::scale_rule scale;
  cast_rule cast;
  random_source random;
  std::uint64_t index, pitch;
  const std::uint32_t* skip;

  __device__ __forceinline__ std::uint64_t index_of(std::uint64_t row, std::uint32_t col) const {
    return index + row * pitch + col;
  }
};

/// Blocks that a multiprocessor must hold: while some wait at a barrier others load.
template <format_id From>
inline constexpr int resident_blocks = spec_of(From).storage_bits == 16 ? 4 : 2;

template <format_id From>
using strip_of = packed<spec_of(From).storage_bits, strip>;

/// How rows lie in memory.
enum class access {
  strips,    ///< patch_task::aligned: whole strips
  elements,  ///< anyhow
};

template <format_id From>
__device__ __forceinline__ std::uint32_t load_element(const patch_task& t, std::uint64_t row,
                                                      std::uint32_t col) {
  constexpr int bytes = spec_of(From).storage_bits / 8;
  return static_cast<std::uint32_t>(
      load_code(t.in + row * t.in_row_bytes + std::uint64_t{col} * bytes, bytes));
}

/// Strips below one another from (row, col) on, of which `count` lie in the matrix; zeros, which
/// change no amax, beyond it.
template <format_id From, access Access, int Rows>
__device__ __forceinline__ void load_strips(const patch_task& t, std::uint64_t row,
                                            std::uint32_t col, int count,
                                            strip_of<From> (&x)[Rows]) {
  constexpr int bytes = spec_of(From).storage_bits / 8;
  const std::byte* from = t.in + row * t.in_row_bytes + std::uint64_t{col} * bytes;
#pragma unroll
  for (int i = 0; i < Rows; ++i, from += t.in_row_bytes) {
    x[i] = {};
    if (i >= count) continue;
    if constexpr (Access == access::strips) {
      x[i] = strip_of<From>::load(from);
    } else {
#pragma unroll
      for (int k = 0; k < strip; ++k) {
        if (col + k < t.cols) {
          x[i].set(k, static_cast<std::uint32_t>(load_code(from + k * bytes, bytes)));
        }
      }
    }
  }
}

/// Element i as binary32. A NaN need not be the canonical one: what follows maps all alike.
template <format_id From>
__device__ __forceinline__ float element(const strip_of<From>& x, int i) {
  if constexpr (From == format_id::fp32) {
    return __uint_as_float(x.w[i]);
  } else if constexpr (From == format_id::bf16) {
    return __uint_as_float(i % 2 == 0 ? x.w[i / 2] << 16 : x.w[i / 2] & 0xFFFF0000u);
  } else {
    static_assert(From == format_id::fp16);
    float f;
    const auto half = static_cast<unsigned short>(x.w[i / 2] >> (i % 2 * 16));
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half));
    return f;
  }
}

/// The magnitudes of Inf and above are those of Inf and NaN.
template <format_id From>
inline constexpr auto inf_magnitude = static_cast<std::uint32_t>(numerics::inf_code(spec_of(From)));

/// The smaller magnitude of each of two pairs of 16-bit codes that are no NaN, with any sign.
template <format_id From>
__device__ __forceinline__ std::uint32_t smaller_magnitudes(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t least;
  if constexpr (From == format_id::bf16) {
    asm("min.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(least) : "r"(a), "r"(b));
  } else {
    static_assert(From == format_id::fp16);
    asm("min.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(least) : "r"(a), "r"(b));
  }
  return least;
#else
  return 0;  // why_not_native() keeps older GPUs away
#endif
}

/// The code of an element's magnitude plus one if the policy counts it (numerics::counted); else 0.
template <format_id From>
__device__ __forceinline__ std::uint32_t counted_code(const patch_task& t, std::uint32_t code,
                                                      std::uint64_t row, std::uint32_t col) {
  const nonfinite policy = t.scale.on_nonfinite;
  const bool counts = code < inf_magnitude<From> || policy == nonfinite::propagate ||
                      (policy != nonfinite::skip_nonfinite && code == inf_magnitude<From>);
  return counts && row < t.rows && col < t.cols ? code + 1 : 0;
}

/// The larger magnitude of each of two pairs of 16-bit codes, with any sign; NaN before numbers.
template <format_id From>
__device__ __forceinline__ std::uint32_t larger_magnitudes(std::uint32_t a, std::uint32_t b) {
#if __CUDA_ARCH__ >= 890
  std::uint32_t most;
  if constexpr (From == format_id::bf16) {
    asm("max.NaN.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
  } else {
    static_assert(From == format_id::fp16);
    asm("max.NaN.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(most) : "r"(a), "r"(b));
  }
  return most;
#else
  return 0;  // why_not_native() keeps older GPUs away
#endif
}

/// The maxima of rows of magnitudes, as codes of their format: for 16-bit formats those of two rows
/// in one word.
template <format_id From, int Rows>
struct row_maxima {
  static constexpr bool paired = spec_of(From).storage_bits == 16;
  static constexpr int words = paired ? Rows / 2 : Rows;
  static constexpr std::uint32_t magnitude = (1u << (spec_of(From).storage_bits - 1)) - 1;
  std::uint32_t w[words];

  /// Of all elements: the amax unless one of them is NaN or Inf.
  __device__ __forceinline__ explicit row_maxima(const strip_of<From> (&x)[Rows]) {
    std::uint32_t most[Rows];
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      if constexpr (paired) {
        most[i] = larger_magnitudes<From>(larger_magnitudes<From>(x[i].w[0], x[i].w[1]),
                                          larger_magnitudes<From>(x[i].w[2], x[i].w[3])) &
                  0x7FFF7FFFu;
      } else {
        most[i] = 0;
#pragma unroll
        for (const std::uint32_t code : x[i].w) most[i] = max(most[i], code & magnitude);
      }
    }
    if constexpr (paired) {
#pragma unroll
      for (int i = 0; i < words; ++i) {
        w[i] = __vmaxu2(__byte_perm(most[2 * i], most[2 * i + 1], 0x5410),
                        __byte_perm(most[2 * i], most[2 * i + 1], 0x7632));
      }
    } else {
#pragma unroll
      for (int i = 0; i < words; ++i) w[i] = most[i];
    }
  }
  /// Of the elements' counted_code().
  __device__ __forceinline__ row_maxima(const strip_of<From> (&x)[Rows], const patch_task& t,
                                        std::uint64_t row, std::uint32_t col) {
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      std::uint32_t most = 0;
#pragma unroll
      for (int k = 0; k < strip; ++k) {
        most = max(most, counted_code<From>(t, x[i].code(k) & magnitude, row + i, col + k));
      }
      if constexpr (paired) {
        w[i / 2] = i % 2 == 0 ? most : w[i / 2] | most << 16;
      } else {
        w[i] = most;
      }
    }
  }
  /// Joins those of 2^log2 neighbouring lanes.
  __device__ __forceinline__ void join_lanes(int log2) {
    for (int apart = 1 << log2 >> 1; apart > 0; apart >>= 1) {
#pragma unroll
      for (std::uint32_t& word : w) {
        const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, word, apart);
        word = paired ? __vmaxu2(word, other) : max(word, other);
      }
    }
  }
  /// That of a row which differs among lanes.
  __device__ __forceinline__ std::uint32_t of_row(unsigned row) const {
    std::uint32_t word = w[0];
#pragma unroll
    for (int i = 1; i < words; ++i) {
      if ((paired ? row / 2 : row) == static_cast<unsigned>(i)) word = w[i];
    }
    if constexpr (!paired) return word;
    return row % 2 != 0 ? word >> 16 : word & 0xFFFFu;
  }
  /// Whether a row has NaN or Inf; of all elements.
  __device__ __forceinline__ bool reaches_inf() const { return of_all() >= inf_magnitude<From>; }
  __device__ __forceinline__ std::uint32_t of_all() const {
    std::uint32_t most = w[0];
#pragma unroll
    for (const std::uint32_t word : w) most = paired ? __vmaxu2(most, word) : max(most, word);
    return paired ? max(most >> 16, most & 0xFFFFu) : most;
  }
};

/// The maxima of a strip's columns over rows, as row_maxima.
template <format_id From>
struct column_maxima {
  static constexpr bool paired = spec_of(From).storage_bits == 16;
  strip_of<From> most{};

  /// Of all elements.
  template <int Rows>
  __device__ __forceinline__ explicit column_maxima(const strip_of<From> (&x)[Rows]) {
#pragma unroll
    for (int k = 0; k < strip_of<From>::words; ++k) {
      most.w[k] = x[0].w[k];
#pragma unroll
      for (int i = 1; i < Rows; ++i) {
        if constexpr (paired) {
          most.w[k] = larger_magnitudes<From>(most.w[k], x[i].w[k]);
        } else {
          most.w[k] = max(most.w[k] & 0x7FFFFFFFu, x[i].w[k] & 0x7FFFFFFFu);
        }
      }
      most.w[k] &= paired ? 0x7FFF7FFFu : 0x7FFFFFFFu;
    }
  }
  /// Of the elements' counted_code().
  template <int Rows>
  __device__ __forceinline__ column_maxima(const strip_of<From> (&x)[Rows], const patch_task& t,
                                           std::uint64_t row, std::uint32_t col) {
#pragma unroll
    for (int c = 0; c < strip; ++c) {
      std::uint32_t of_column = 0;
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
        const std::uint32_t code = x[i].code(c) & row_maxima<From, Rows>::magnitude;
        of_column = max(of_column, counted_code<From>(t, code, row + i, col + c));
      }
      most.set(c, of_column);
    }
  }
  __device__ __forceinline__ bool reaches_inf() const {
    bool any = false;
#pragma unroll
    for (int c = 0; c < strip; ++c) any |= most.code(c) >= inf_magnitude<From>;
    return any;
  }
};

/// The maximum of a tile's magnitudes.
struct tile_maximum {
  std::uint32_t code;
  bool plus_one;  ///< of what is counted, as counted_code() has it
  bool finite;    ///< whether all elements are

  template <format_id From>
  __device__ __forceinline__ tile_amax amax() const {
    if (plus_one && code == 0) return numerics::nothing_counted;
    return static_cast<tile_amax>(
        numerics::decode<std::uint32_t>(spec_of(From), code - (plus_one ? 1 : 0)));
  }
};

/// The scale of tile (row, col) of the grid, and whether its elements must be scaled and rounded by
/// the definition.
struct patch_scale {
  tile_scale scale;
  bool special;
};

/// `known`: the scale that all tiles have, or null.
template <format_id From, format_id To, class Cast>
__device__ __forceinline__ patch_scale scale_of_tile(const patch_task& t, const tile_maximum& most,
                                                     std::uint64_t row, std::uint64_t col,
                                                     const tile_scale* known = nullptr) {
  tile_scale scale;
  if (known != nullptr) {
    scale = *known;
  } else if (t.multipliers != nullptr) {
    scale = numerics::scale_of_multiplier<hardware>(*reinterpret_cast<const std::uint32_t*>(
        t.multipliers + row * t.multipliers_row_bytes + col * t.multipliers_col_bytes));
  } else {
    scale = numerics::scale_of<hardware>(spec_of(To), t.scale, most.amax<From>());
  }
  return {scale, !Cast::serves(scale, most.finite)};
}

__device__ __forceinline__ void store_scale(const patch_task& t, const tile_scale& scale,
                                            std::uint64_t row, std::uint64_t col) {
  const auto store = [&](std::byte* at) {
    if (t.byte_scales) {
      *at = static_cast<std::byte>(numerics::e8m0_of(scale.stored));
    } else {
      *reinterpret_cast<std::uint32_t*>(at) = scale.stored;
    }
  };
  if (t.scales != nullptr) store(t.scales + row * t.scales_row_bytes + col * t.scales_col_bytes);
  if (t.scales_transposed != nullptr) {
    store(t.scales_transposed + col * t.scales_transposed_row_bytes +
          row * t.scales_transposed_col_bytes);
  }
}

/// What the elements of a tile are scaled by, as binary32 bits.
struct tile_factor {
  std::uint32_t factor;      ///< tile_scale::factor
  std::uint32_t reciprocal;  ///< of it, where a cast divides
};

/// The factors of a strip: one, or one for each element.
struct one_factor {
  tile_factor factor;
  __device__ __forceinline__ const tile_factor& of(int) const { return factor; }
};
struct factor_of_each {
  tile_factor factors[strip];
  __device__ __forceinline__ explicit factor_of_each(const tile_factor* of_tiles) {
#pragma unroll
    for (int i = 0; i < strip; ++i) factors[i] = of_tiles[i];
  }
  __device__ __forceinline__ const tile_factor& of(int i) const { return factors[i]; }
};

/// The codes of a strip by the definition, element by element; read again from memory. Element i is
/// in tile i * tile_step of those given.
template <format_id From, format_id To>
__device__ __noinline__ uint2 defined_strip(const patch_task& t, const tile_factor* factors,
                                            int tile_step, std::uint64_t row, std::uint32_t col) {
  std::uint64_t codes = 0;
#pragma unroll 1
  for (int i = 0; i < strip && col + i < t.cols; ++i) {
    const std::uint32_t x =
        numerics::decode<std::uint32_t>(spec_of(From), load_element<From>(t, row, col + i));
    const std::uint32_t y =
        numerics::scaled<hardware>(t.scale.math, {0, factors[i * tile_step].factor}, x);
    const std::uint32_t dither =
        t.cast.round == rounding::stochastic ? dither_of(t.random, t.index_of(row, col + i)) : 0;
    const std::uint64_t code = numerics::encode<std::uint32_t>(spec_of(To), t.cast, y, dither).code;
    codes |= code << (8 * i);
  }
  return make_uint2(static_cast<unsigned>(codes), static_cast<unsigned>(codes >> 32));
}

/// Eight codes to a row of codes; those beyond `count` are not in the matrix.
template <access Access>
__device__ __forceinline__ void store_codes(std::byte* at, std::uint64_t count, uint2 codes) {
  if constexpr (Access == access::strips) {
    *reinterpret_cast<uint2*>(at) = codes;
  } else {
#pragma unroll
    for (int i = 0; i < strip; ++i) {
      const std::uint32_t word = i < 4 ? codes.x : codes.y;
      if (static_cast<std::uint64_t>(i) < count) {
        at[i] = static_cast<std::byte>(word >> (i % 4 * 8));
      }
    }
  }
}

}  // namespace samebits::cuda
