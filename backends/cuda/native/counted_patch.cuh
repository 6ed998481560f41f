// A patch of a quantization with statistics: where it is, how it comes from memory, how the nodes
// of its strips are joined, and the maxima of its tiles.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/native/counted_strip.cuh"
#include "backends/cuda/native/patch_block.cuh"
#include "backends/cuda/statistics.cuh"

namespace samebits::cuda {

/// Patches side by side whose rows have nodes in common, log2.
constexpr int most_grouped = 2;

/// A launch: the quantization, its parts, and what does not change from patch to patch.
struct counted_launch {
  patch_task t;
  statistics_parts parts;
  unsigned tiles;               ///< of a patch
  unsigned row_step;            ///< from the factors of a patch's row to those of the next
  unsigned row_blocks, across;  ///< groups of 2^grouped patches below each other and side by side
  unsigned down, right;         ///< from a group to the one gridDim.x after it
  int grouped;                  ///< at most most_grouped
};
/// Where things are; Lanes is log2 of the threads along a row, or 0 where that is t.lanes.
template <int Lanes>
struct patch_lanes {
  __device__ __forceinline__ static int log2(const patch_task& t) {
    return Lanes == 0 ? t.lanes : Lanes;
  }
  __device__ __forceinline__ static unsigned lane(const patch_task& t) {
    return threadIdx.x & ((1u << log2(t)) - 1);
  }
  __device__ __forceinline__ static unsigned line(const patch_task& t) {
    return threadIdx.x >> log2(t);
  }
};

/// A patch of the matrix, and a thread's part of it.
template <int Lanes>
struct patch_place : patch_lanes<Lanes> {
  using patch_lanes<Lanes>::log2;
  unsigned row_block, col_block;

  __device__ __forceinline__ std::uint64_t first_row(const patch_task& t) const {
    return std::uint64_t{row_block} * (block_threads * rows_a_thread >> log2(t));
  }
  __device__ __forceinline__ std::uint64_t row(const patch_task& t) const {
    return first_row(t) + this->line(t) * rows_a_thread;
  }
  __device__ __forceinline__ std::uint32_t col(const patch_task& t) const {
    return ((col_block << log2(t)) + this->lane(t)) * strip;
  }
  __device__ __forceinline__ bool is_whole(const patch_task& t) const {
    return first_row(t) + (block_threads * rows_a_thread >> log2(t)) <= t.rows;
  }
  /// Strips of the thread that lie in the matrix.
  __device__ __forceinline__ int count(const patch_task& t) const {
    if (is_whole(t)) return rows_a_thread;
    const std::uint64_t at = row(t);
    return at >= t.rows ? 0 : static_cast<int>(min(t.rows - at, std::uint64_t{rows_a_thread}));
  }
};

/// The next patch of a block, which takes every gridDim.x-th group.
template <int Lanes>
struct patch_walk {
  unsigned row_block, group;  ///< of the row of groups
  unsigned patch = 0;

  __device__ __forceinline__ explicit patch_walk(const counted_launch& c)
      : row_block(blockIdx.x / c.across), group(blockIdx.x % c.across) {}
  __device__ __forceinline__ bool ends(const counted_launch& c) const {
    return row_block >= c.row_blocks;
  }
  __device__ __forceinline__ patch_place<Lanes> place(const counted_launch& c) const {
    return {{}, row_block, (group << c.grouped) + patch};
  }
  __device__ __forceinline__ void advance(const counted_launch& c) {
    if (++patch >> c.grouped == 0) return;
    patch = 0;
    row_block += c.down;
    group += c.right;
    if (group >= c.across) group -= c.across, ++row_block;
  }
};

/// The strips of a patch, and then their nodes in the same places. Until the nodes are joined each
/// place is one thread's.
template <format_id From>
struct strip_stage {
  static constexpr int words = strip_of<From>::words / 4;  // of 16 bytes
  uint4 word[rows_a_thread][words][block_threads];

  template <int Lanes>
  __device__ __forceinline__ void fetch(const patch_task& t, const patch_place<Lanes>& at) {
    const auto to = static_cast<unsigned>(__cvta_generic_to_shared(&word[0][0][threadIdx.x]));
    const std::byte* from =
        t.in + at.row(t) * t.in_row_bytes + std::uint64_t{at.col(t)} * (words * 16 / strip);
    if (at.is_whole(t)) {
#pragma unroll
      for (int i = 0; i < rows_a_thread; ++i, from += t.in_row_bytes) copy(to, i, from, 16);
    } else {
      const int count = at.count(t);
#pragma unroll 1
      for (int i = 0; i < rows_a_thread; ++i, from += t.in_row_bytes) {
        // Zeros, which change no amax, beyond the matrix.
        copy(to, i, i < count ? from : t.in, i < count ? 16 : 0);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  /// Until what the thread fetched is there.
  __device__ __forceinline__ static void wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }
  __device__ __forceinline__ strip_of<From> load(int i) const {
    strip_of<From> x;
#pragma unroll
    for (int k = 0; k < words; ++k) {
      const uint4 w = word[i][k][threadIdx.x];
      x.w[4 * k] = w.x, x.w[4 * k + 1] = w.y, x.w[4 * k + 2] = w.z, x.w[4 * k + 3] = w.w;
    }
    return x;
  }
  __device__ __forceinline__ void set_node(int i, const sum_node& node) {
    *reinterpret_cast<double2*>(&word[i][0][threadIdx.x]) = make_double2(node.signal, node.noise);
  }
  /// A thread's share of a row once all nodes are there: it joins eight neighbours, in an order in
  /// which lanes do not meet in the banks; which of two comes first is all the same. Two threads or
  /// more share a row then, and of two neighbours the first goes on with the signal and the other
  /// with the noise.
  template <int Lanes>
  __device__ __forceinline__ double join_row(const patch_task& t) const {
    const int share = patch_lanes<Lanes>::log2(t) - 3;
    const unsigned row = threadIdx.x >> share, eighth = threadIdx.x & ((1u << share) - 1);
    const uint4* const from =
        &word[row % rows_a_thread][0][((row / rows_a_thread << share) + eighth) * 8];
    sum_node eight[8];
#pragma unroll
    for (unsigned k = 0; k < 8; ++k) {
      const double2 node = *reinterpret_cast<const double2*>(from + (k ^ threadIdx.x % 8));
      eight[k] = {node.x, node.y};
    }
#pragma unroll
    for (int n = 8; n > 1; n /= 2) {
#pragma unroll
      for (int k = 0; k < n / 2; ++k) eight[k] = joined(eight[2 * k], eight[2 * k + 1]);
    }
    const bool noise = threadIdx.x % 2 != 0;
    const double given = noise ? eight[0].signal : eight[0].noise;
    double mine = noise ? eight[0].noise : eight[0].signal;
    mine = __dadd_rn(mine, __shfl_xor_sync(0xFFFFFFFFu, given, 1));
    for (int apart = 2; apart < 1 << share; apart <<= 1) {
      mine = __dadd_rn(mine, __shfl_xor_sync(0xFFFFFFFFu, mine, apart));
    }
    return mine;
  }

 private:
  __device__ __forceinline__ static void copy(unsigned to, int i, const std::byte* from,
                                              unsigned bytes) {
#pragma unroll
    for (int k = 0; k < words; ++k) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                       to + static_cast<unsigned>((i * words + k) * sizeof word[0][0])),
                   "l"(from + k * 16), "r"(bytes)
                   : "memory");
    }
  }
};

/// What a block keeps in shared memory; behind it the tiles' factors and their maxima. Strips of 32
/// bytes leave no room for a second patch.
template <format_id From>
struct counted_memory {
  static constexpr unsigned stages = is_half<From> ? 2 : 1;
  strip_stage<From> stage[stages];
  double waiting[most_grouped][block_threads];
  element_counts of_warps[block_threads / 32];
};

/// The maxima of the rows of a thread's strips, joined over the 2^log2 lanes of a tile.
template <format_id From>
__device__ __forceinline__ void join_rows_of_tiles(row_maxima<From, rows_a_thread> mine, int log2,
                                                   std::uint32_t* tiles, unsigned step) {
  const unsigned lane = threadIdx.x & ((1u << log2) - 1);
  if constexpr (is_half<From>) {
    if (log2 >= 2) {  // each lane of four goes on with another word: two rows
      const bool odd = (lane & 1) != 0, upper = (lane & 2) != 0;
      const auto exchanged = [](std::uint32_t kept, std::uint32_t given, int apart) {
        return __vmaxu2(kept, __shfl_xor_sync(0xFFFFFFFFu, given, apart));
      };
      const auto& w = mine.w;
      const std::uint32_t a = exchanged(odd ? w[2] : w[0], odd ? w[0] : w[2], 1);
      const std::uint32_t b = exchanged(odd ? w[3] : w[1], odd ? w[1] : w[3], 1);
      std::uint32_t two = exchanged(upper ? b : a, upper ? a : b, 2);
      for (int apart = 4; apart < 1 << log2; apart <<= 1) two = exchanged(two, two, apart);
      if (lane >= 4) return;
      tiles += ((odd ? 4u : 0u) + (upper ? 2u : 0u)) * step;
      tiles[0] = two & 0xFFFFu;
      tiles[step] = two >> 16;
      return;
    }
  }
  mine.join_lanes(log2);
  if (lane != 0) return;
#pragma unroll
  for (int i = 0; i < rows_a_thread; ++i) tiles[i * step] = mine.of_row(i);
}

/// The maxima of a block's tiles, to `tiles`; those of squares start as zeros.
template <format_id From, shape Shape>
__device__ __forceinline__ void join_finite_maxima(const counted_launch& c,
                                                   const row_maxima<From, rows_a_thread>& mine,
                                                   std::uint32_t most, std::uint32_t* tiles) {
  const int log2 = c.t.tile_cols - 3;  // of the lanes of a tile
  if constexpr (Shape == shape::rows) {
    join_rows_of_tiles<From>(mine, log2, tiles, c.row_step);
  } else {
    for (int apart = 1; apart < 1 << log2; apart <<= 1) {
      most = max(most, __shfl_xor_sync(0xFFFFFFFFu, most, apart));
    }
    if ((threadIdx.x & ((1u << log2) - 1)) == 0) atomicMax(tiles, most);
  }
}

}  // namespace samebits::cuda
