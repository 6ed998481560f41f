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
struct combined_statistics {
  std::uint64_t count, nan, inf, zeros, subnormals;
  std::uint32_t amax;
  std::uint64_t squares;  ///< binary64 bits; combined() leaves it alone

  __device__ __forceinline__ void combine(const combined_statistics& other) {
    count += other.count;
    nan += other.nan;
    inf += other.inf;
    zeros += other.zeros;
    subnormals += other.subnormals;
    amax = max(amax, other.amax);
  }
};

/// Stores the statistics in the public structure.
__device__ __forceinline__ void store(tensor_statistics& out, const combined_statistics& f) {
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

/// Counts and amax of the lanes of a warp combined, in every lane. Leaves `squares` alone.
__device__ __forceinline__ combined_statistics warp_combined(combined_statistics f) {
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
struct block_statistics {
  static constexpr int warps = Threads / 32;
  combined_statistics of_warp[warps];

  /// Returns the result in thread 0. All threads must call, and pass a __syncthreads() before a
  /// second call.
  __device__ combined_statistics combined(const combined_statistics& own) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const combined_statistics mine = warp_combined(own);
    if (lane == 0) of_warp[warp] = mine;
    __syncthreads();
    combined_statistics all = {};
    if (warp == 0) {
      if (lane < warps) all = of_warp[lane];
      all = warp_combined(all);
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
  block_statistics<total_threads> totals;
  unsigned long long first_bad;
};

/// Statistics of a whole list.
struct list_total {
  combined_statistics totals;
  std::int64_t first_bad;  ///< first tensor with NaN or Inf, or -1
};

/// Combines the statistics of all tensors, in one block; the result is in thread 0. All threads
/// must call.
template <class Arithmetic>
__device__ list_total total_of(const tensor_statistics* tensors, std::uint64_t count,
                               total_scratch<Arithmetic>& scratch) {
  constexpr unsigned long long none = ~0ull;
  if (threadIdx.x == 0) scratch.first_bad = none;
  __syncthreads();
  combined_statistics own = {};
  unsigned long long bad = none;
  const auto sum =
      block_tree<Arithmetic, total_threads>::sum(count, scratch.tree, [&](std::uint64_t i) {
        const tensor_statistics t = tensors[i];
        const auto squares = static_cast<std::uint64_t>(__double_as_longlong(t.squares));
        own.combine({t.elements, t.nan, t.inf, t.zeros, t.subnormals, t.amax_bits, 0});
        if (t.nan + t.inf != 0) bad = min(bad, static_cast<unsigned long long>(i));
        return Arithmetic::from_bits(squares);
      });
  if (bad != none) atomicMin(&scratch.first_bad, bad);
  __syncthreads();
  list_total total = {scratch.totals.combined(own), -1};
  total.totals.squares = Arithmetic::bits(sum);
  if (scratch.first_bad != none) total.first_bad = static_cast<std::int64_t>(scratch.first_bad);
  return total;
}

}  // namespace samebits::cuda
