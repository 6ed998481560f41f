// Statistics of all tensors of a list: counts and maxima of a block's threads combined, and the sum
// of squares over tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/sum_tree.cuh"
#include "samebits/tensor_list.hpp"

namespace samebits::cuda {

/// Statistics while they are combined. tensor_statistics is the public form, with the sum as a
/// double.
struct joined_figures {
  std::uint64_t count, nan, inf, zeros, subnormals;
  std::uint32_t amax;
  std::uint64_t squares;  ///< binary64 bits; join() leaves it alone

  __device__ __forceinline__ void join(const joined_figures& other) {
    count += other.count;
    nan += other.nan;
    inf += other.inf;
    zeros += other.zeros;
    subnormals += other.subnormals;
    amax = max(amax, other.amax);
  }
};

/// Statistics of a span: 1024 chunks of a large tensor. One block writes them, another block
/// reads.
struct piece_figures {
  joined_figures figures;

  /// Reads past the L1 cache, because another block of the same launch wrote the statistics.
  __device__ joined_figures from_other_blocks() const {
    static_assert(sizeof(joined_figures) == 56);
    const auto* const words = reinterpret_cast<const unsigned long long*>(&figures);
    joined_figures f;
    f.count = 0;
    f.nan = __ldcg(words + 1);
    f.inf = __ldcg(words + 2);
    f.zeros = __ldcg(words + 3);
    f.subnormals = __ldcg(words + 4);
    f.amax = static_cast<std::uint32_t>(__ldcg(words + 5));
    f.squares = __ldcg(words + 6);
    return f;
  }
};

/// Stores the statistics in the public structure.
__device__ __forceinline__ void store(tensor_statistics& out, const joined_figures& f) {
  out.elements = f.count;
  out.nan = f.nan;
  out.inf = f.inf;
  out.zeros = f.zeros;
  out.subnormals = f.subnormals;
  // Also writes the four bytes of padding after amax_bits, because they are copied to the host as
  // well.
  static_assert(offsetof(tensor_statistics, squares) == offsetof(tensor_statistics, amax_bits) + 8);
  *reinterpret_cast<std::uint64_t*>(&out.amax_bits) = f.amax;
  out.squares = __longlong_as_double(static_cast<long long>(f.squares));
}

/// The sum over the lanes of a warp, in every lane.
__device__ __forceinline__ std::uint64_t warp_sum(std::uint64_t x) {
#pragma unroll
  for (int apart = 16; apart > 0; apart /= 2) x += __shfl_xor_sync(all_lanes, x, apart);
  return x;
}

/// Counts and amax of the lanes of a warp combined, in every lane. Leaves `squares` alone.
__device__ __forceinline__ joined_figures warp_joined(joined_figures f) {
  f.count = warp_sum(f.count);
  f.nan = warp_sum(f.nan);
  f.inf = warp_sum(f.inf);
  f.zeros = warp_sum(f.zeros);
  f.subnormals = warp_sum(f.subnormals);
  f.amax = __reduce_max_sync(all_lanes, f.amax);
  return f;
}

/// Combines counts and amax of a block's threads, in shared memory.
template <int Threads>
struct block_figures {
  static constexpr int warps = Threads / 32;
  joined_figures of_warp[warps];

  /// Returns the result in thread 0. All threads must call, and pass a __syncthreads() before a
  /// second call.
  __device__ joined_figures joined(const joined_figures& own) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const joined_figures mine = warp_joined(own);
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    joined_figures all = {};
    if (warp == 0) {
      if (lane < warps) all = of_warp[lane];
      all = warp_joined(all);
    }
    return all;
  }
};

/// Threads of the block that computes the total.
inline constexpr int total_threads = 1024;

/// Shared memory of total_of().
template <class Arithmetic>
struct total_scratch {
  typename block_tree<Arithmetic, total_threads>::scratch tree;
  block_figures<total_threads> figures;
  unsigned long long first_bad;
};

/// Statistics of a whole list.
struct plan_total {
  joined_figures figures;
  std::int64_t first_bad;  ///< first tensor with NaN or Inf, or -1
};

/// Combines the statistics of all tensors, in one block; the result is in thread 0. All threads
/// must call.
template <class Arithmetic>
__device__ plan_total total_of(const tensor_statistics* tensors, std::uint64_t count,
                               total_scratch<Arithmetic>& scratch) {
  constexpr unsigned long long none = ~0ull;
  if (threadIdx.x == 0) scratch.first_bad = none;
  __syncthreads();
  joined_figures own = {};
  unsigned long long bad = none;
  const auto sum =
      block_tree<Arithmetic, total_threads>::sum(count, scratch.tree, [&](std::uint64_t i) {
        const tensor_statistics t = tensors[i];
        const auto squares = static_cast<std::uint64_t>(__double_as_longlong(t.squares));
        own.join({t.elements, t.nan, t.inf, t.zeros, t.subnormals, t.amax_bits, 0});
        if (t.nan + t.inf != 0) bad = min(bad, static_cast<unsigned long long>(i));
        return Arithmetic::from_bits(squares);
      });
  if (bad != none) atomicMin(&scratch.first_bad, bad);
  __syncthreads();
  plan_total total = {scratch.figures.joined(own), -1};
  total.figures.squares = Arithmetic::bits(sum);
  if (scratch.first_bad != none) total.first_bad = static_cast<std::int64_t>(scratch.first_bad);
  return total;
}

}  // namespace samebits::cuda
