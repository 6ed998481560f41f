// The maxima of tiles in a quantization with statistics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/quantize/counted/counted_patch.cuh"
#include "backends/cuda/quantize/counted/counted_strip.cuh"

namespace samebits::cuda {

/// Codes from here on have the exponent of the largest finite numbers, or more: in a patch that has
/// one, what a code stands for might be Inf, and all goes by the definition.
template <format_id From>
inline constexpr std::uint32_t top_binade = inf_magnitude<From> -
                                            (1u << spec_of(From).mantissa_bits);

/// The tiles of a lane: in each half one, or two of 16 columns. Tile is log2 of their columns, or 0
/// where that is t.tile_cols.
template <int Tile>
struct lane_tiles {
  static constexpr int most = Tile == 0 ? 2 : 1;  ///< of a half
  __device__ __forceinline__ static int log2(const counted_launch& c) {
    return Tile == 0 ? c.t.tile_cols : Tile;
  }
  __device__ __forceinline__ static bool two(const counted_launch& c) {
    return Tile == 0 && c.t.tile_cols < 5;
  }
  /// Lanes of a tile, log2.
  __device__ __forceinline__ static int lanes(const counted_launch& c) {
    return max(log2(c) - 5, 0);
  }
};

/// The largest magnitudes of a lane's tiles, as codes: for 16-bit formats those of the two halves
/// in one word.
template <format_id From, int Most>
struct lane_maxima {
  static constexpr int words = is_half<From> ? 1 : halves;
  std::uint32_t w[Most][words];

  __device__ __forceinline__ std::uint32_t code(int half, int i) const {
    if constexpr (!is_half<From>) return half == 0 ? w[i][0] : w[i][words - 1];
    return half == 0 ? w[i][0] & 0xFFFFu : w[i][0] >> 16;
  }
  __device__ __forceinline__ void set(int half, int i, std::uint32_t code) {
    if constexpr (is_half<From>) {
      w[i][0] = half == 0 ? code : w[i][0] | code << 16;
    } else {
      w[i][half] = code;
    }
  }
  __device__ __forceinline__ static std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
    return is_half<From> ? __vmaxu2(a, b) : max(a, b);
  }
  /// Joins tile i's over 2^log2 neighbouring lanes; at most 8.
  __device__ __forceinline__ void join_lanes(int i, int log2) {
#pragma unroll
    for (int apart = 1; apart < 8; apart <<= 1) {
      if (apart >= 1 << log2) continue;
#pragma unroll
      for (std::uint32_t& word : w[i]) {
        word = larger(word, __shfl_xor_sync(0xFFFFFFFFu, word, apart));
      }
    }
  }
  /// Where all is one tile: makes that of tile 0 that of all.
  __device__ __forceinline__ void share() {
#pragma unroll
    for (int i = 1; i < Most; ++i) {
#pragma unroll
      for (int k = 0; k < words; ++k) w[i][k] = w[0][k];
    }
  }
  /// Of all, as w has them.
  __device__ __forceinline__ std::uint32_t of_all() const {
    std::uint32_t most = w[0][0];
#pragma unroll
    for (const auto& of_tile : w) {
#pragma unroll
      for (const std::uint32_t word : of_tile) most = larger(most, word);
    }
    return most;
  }
};

/// Whether a word of magnitudes, as lane_maxima has them, has one of at least `least`.
template <format_id From>
__device__ __forceinline__ bool reaches(std::uint32_t word, std::uint32_t least) {
  if constexpr (!is_half<From>) return word >= least;
  return ((word + (0x8000u - least) * 0x10001u) & 0x80008000u) != 0;
}
/// Whether both halves of one are in a range.
__device__ __forceinline__ bool both_within(std::uint32_t word, numerics::magnitude_range range) {
  const std::uint32_t above = word + (0x8000u - range.least) * 0x10001u;
  const std::uint32_t beyond = word + (0x8000u - range.most) * 0x10001u;
  return (above & ~beyond & 0x80008000u) == 0x80008000u;
}

/// Maxima of the lane's part of each tile. Where a half has two tiles, strip k is of tile k / 2.
template <format_id From, int Tile>
__device__ __forceinline__ auto maxima_of_lane(const counted_launch& c,
                                               const patch_stage<From>& stage) {
  lane_maxima<From, lane_tiles<Tile>::most> most;
  std::uint32_t word[halves][2];
#pragma unroll
  for (int half = 0; half < halves; ++half) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const strip_of<From> a = stage.load(half, 2 * pair), b = stage.load(half, 2 * pair + 1);
      if constexpr (is_half<From>) {
        const auto of_strip = [](const strip_of<From>& x) {
          return larger_magnitudes<From>(larger_magnitudes<From>(x.w[0], x.w[1]),
                                         larger_magnitudes<From>(x.w[2], x.w[3]));
        };
        word[half][pair] = larger_magnitudes<From>(of_strip(a), of_strip(b));
      } else {
        std::uint32_t of_both = 0;
#pragma unroll
        for (int i = 0; i < strip; ++i) {
          of_both = max(of_both, max(a.w[i] & 0x7FFFFFFFu, b.w[i] & 0x7FFFFFFFu));
        }
        word[half][pair] = of_both;
      }
    }
    if (!lane_tiles<Tile>::two(c)) {
      std::uint32_t both;
      if constexpr (is_half<From>) {
        both = larger_magnitudes<From>(word[half][0], word[half][1]);
      } else {
        both = max(word[half][0], word[half][1]);
      }
      word[half][0] = word[half][1] = both;
    }
  }
#pragma unroll
  for (int i = 0; i < lane_tiles<Tile>::most; ++i) {
    if constexpr (is_half<From>) {
      const std::uint32_t a = word[0][i] & 0x7FFF7FFFu, b = word[1][i] & 0x7FFF7FFFu;
      most.w[i][0] = __vmaxu2(__byte_perm(a, b, 0x5410), __byte_perm(a, b, 0x7632));
    } else {
      most.w[i][0] = word[0][i], most.w[i][1] = word[1][i];
    }
  }
  return most;
}

/// The same of what the policy counts, as counted_code() has it.
template <format_id From, shape Shape, int Tile, int Lanes>
__device__ __noinline__ auto counted_maxima_of_lane(const counted_launch& c,
                                                    warp_place<Shape, Lanes> at) {
  lane_maxima<From, lane_tiles<Tile>::most> most{};
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    const std::uint64_t row = at.row(c, half);
    std::uint32_t of_tile[2] = {0, 0};
#pragma unroll 1
    for (unsigned i = 0; i < lane_cols && row < c.t.rows; ++i) {
      // Of two tiles the first is that of the strips which the lane takes first.
      const unsigned second = i / (lane_cols / 2) ^ patch_stage<From>::turn() >> 1;
      const std::uint32_t code =
          load_element<From>(c.t, row, at.col(c) + i) & row_maxima<From, 2>::magnitude;
      std::uint32_t& tile = of_tile[lane_tiles<Tile>::two(c) ? second : 0];
      tile = max(tile, counted_code<From>(c.t, code, row, at.col(c) + i));
    }
    if (!lane_tiles<Tile>::two(c)) of_tile[1] = of_tile[0];
    for (int i = 0; i < lane_tiles<Tile>::most; ++i) most.set(half, i, of_tile[i]);
  }
  return most;
}

/// The maxima of a block's squares, `tiles`, which start as zeros: each lane posts its own, and
/// takes those of its tiles once all have.
template <format_id From, int Tile, int Most>
struct block_maxima {
  /// Threads of a warp that arrive at the barrier: all that read or write here.
  static constexpr unsigned speakers = Tile == 7 ? 1 : 32;
  std::uint32_t* tiles;

  __device__ __forceinline__ void post(const counted_launch& c,
                                       const lane_maxima<From, Most>& most) const {
    const auto of_both = [&](int i) { return max(most.code(0, i), most.code(1, i)); };
    if constexpr (Tile == 7) {
      const std::uint32_t of_warp = __reduce_max_sync(0xFFFFFFFFu, of_both(0));
      if (threadIdx.x % 32 == 0) atomicMax(tiles, of_warp);
    } else {
#pragma unroll
      for (int i = 0; i < Most; ++i) atomicMax(tile(c, i), of_both(i));
    }
  }
  __device__ __forceinline__ lane_maxima<From, Most> take(const counted_launch& c) const {
    lane_maxima<From, Most> most{};
#pragma unroll
    for (int i = 0; i < Most; ++i) {
      std::uint32_t code = 0;
      if constexpr (Tile == 7) {
        // By the lane that speaks for the warp at the barrier.
        if (threadIdx.x % 32 == 0) code = *tiles;
        code = __shfl_sync(0xFFFFFFFFu, code, 0);
      } else {
        code = *tile(c, i);
      }
      most.set(0, i, code);
      most.set(1, i, code);
    }
    return most;
  }
  /// The largest of all.
  __device__ __forceinline__ std::uint32_t of_all() const {
    if constexpr (Tile == 7) return __shfl_sync(0xFFFFFFFFu, threadIdx.x % 32 == 0 ? *tiles : 0, 0);
    return max(tiles[threadIdx.x % 32], tiles[threadIdx.x % 32 + 32]);
  }
  /// By the threads of a warp.
  __device__ __forceinline__ void clear() const {
    if (Tile != 7 || threadIdx.x % 32 == 0) tiles[threadIdx.x % 32] = 0;
    if (Tile != 7) tiles[threadIdx.x % 32 + 32] = 0;
  }

 private:
  __device__ __forceinline__ std::uint32_t* tile(const counted_launch& c, int i) const {
    const int log2 = c.t.tile_cols;
    const unsigned line = threadIdx.x / 32 * 16;
    const unsigned col =
        threadIdx.x % 4 * lane_cols +
        (static_cast<unsigned>(i) ^ patch_stage<From>::turn() >> 1) * (lane_cols / 2);
    return tiles + (line >> log2 << (7 - log2)) + (col >> log2);
  }
};

}  // namespace samebits::cuda
