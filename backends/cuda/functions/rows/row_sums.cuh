// Row sums: how the threads of a kernel combine the sums of the threads of PyTorch's kernels
// (numerics/hardware/torch_operators/row_order.hpp).
//
// A thread may have the sums of A neighbouring threads of PyTorch's, A a power of two up to 8:
//
//   PyTorch's lane   0 1 2 3 4 5 6 7 | 8 9 ... 15 | 16 ... 23 | 24 ... 31
//   thread (A = 8)          0        |     1      |     2     |     3
//
// PyTorch's exchanges over 16 and 8 lanes are then exchanges over 2 and 1, and those over 4, 2 and 1
// lanes lie within the thread.
#pragma once

#include <cstdint>

#include "backends/cuda/functions/step_word.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"

namespace samebits::cuda {

namespace torch = numerics::torch_2_11;

/// The value of the lane `distance` above this one.
template <class Steps>
__device__ __forceinline__ step_word<Steps> of_lane_above(step_word<Steps> x, int distance) {
  return __shfl_down_sync(all_lanes, x.bits, distance);
}
/// The value of the first lane of each group of `width` lanes.
template <class Steps>
__device__ __forceinline__ step_word<Steps> of_first_lane(step_word<Steps> x, int width) {
  return __shfl_sync(all_lanes, x.bits, 0, width);
}
template <class Word>
__device__ __forceinline__ torch::moments<Word> of_lane_above(const torch::moments<Word>& m,
                                                              int distance) {
  return {of_lane_above(m.mean, distance), of_lane_above(m.squares, distance),
          of_lane_above(m.count, distance)};
}
template <class Word>
__device__ __forceinline__ torch::moments<Word> of_first_lane(const torch::moments<Word>& m,
                                                              int width) {
  return {of_first_lane(m.mean, width), of_first_lane(m.squares, width),
          of_first_lane(m.count, width)};
}

/// torch::fold_halves() of the sums of `lanes` lanes of PyTorch's, in the first lane of the group.
template <int A, class Sum, class Combine>
__device__ __forceinline__ Sum fold_lanes(Sum (&sums)[A], int lanes, const Combine& combine) {
  for (int step = lanes / 2; step >= A; step /= 2) {
#pragma unroll
    for (int k = 0; k < A; ++k) sums[k] = combine(sums[k], of_lane_above(sums[k], step / A));
  }
#pragma unroll
  for (int step = A / 2; step > 0; step /= 2) {
#pragma unroll
    for (int k = 0; k < step; ++k) sums[k] = combine(sums[k], sums[k + step]);
  }
  return sums[0];
}

/// The threads of a block that compute one row: `count` lanes of a warp, a power of two, or the
/// whole block. Requires that all threads of a block make the same calls.
template <class Word>
class row_threads {
 public:
  static constexpr int max_warps = torch::max_threads / torch::warp_lanes;

  /// Sums of warps. Two arrays in turn: a warp that writes one has seen all others leave it, because
  /// they reached the barrier of the other.
  struct shared_sums {
    std::uint32_t words[2][max_warps * sizeof(torch::moments<Word>) / sizeof(Word)];
  };

  __device__ __forceinline__ row_threads(shared_sums& shared, int index, int count)
      : shared_(shared), index_(index), count_(count) {}

  [[nodiscard]] __device__ __forceinline__ int index() const { return index_; }
  [[nodiscard]] __device__ __forceinline__ int count() const { return count_; }

  /// torch::fold_halves() within each warp of PyTorch's, then of the sums of `lanes` warps, where
  /// lanes without a warp hold `empty`; up to one warp, the first alone. In all threads.
  template <int A, class Sum, class Combine>
  __device__ __forceinline__ Sum fold(Sum (&sums)[A], const Sum& empty, int lanes,
                                      const Combine& combine) {
    const int used = count_ * A;  // threads of PyTorch's
    const Sum own = fold_lanes<A>(sums, used < warp ? used : warp, combine);
    if (used <= warp) return of_first_lane(own, count_);
    Sum* const of_warps = next_array<Sum>();
    if (index_ % (warp / A) == 0) of_warps[index_ / (warp / A)] = own;
    return fold_warps(of_warps, used / warp, empty, lanes, combine);
  }

  /// The same for `parts` times as many threads of PyTorch's: thread t has the sums of_part(i) of its
  /// threads t + i * count().
  template <class Sum, class Part, class Combine>
  __device__ __forceinline__ Sum fold_parts(int parts, const Part& of_part, const Sum& empty,
                                            int lanes, const Combine& combine) {
    Sum* const of_warps = count_ * parts > warp ? next_array<Sum>() : nullptr;
    for (int i = 0; i < parts; ++i) {
      Sum sum[1] = {of_part(i)};
      const Sum own = fold_lanes<1>(sum, count_ < warp ? count_ : warp, combine);
      if (of_warps == nullptr) return of_first_lane(own, count_);
      if (index_ % warp == 0) of_warps[(i * count_ + index_) / warp] = own;
    }
    return fold_warps(of_warps, count_ * parts / warp, empty, lanes, combine);
  }

  /// The sums of each warp's threads one after another, then the warps' sums. In all threads.
  /// `words`: shared memory of a word for each of PyTorch's threads.
  template <class Part, class Combine>
  __device__ __forceinline__ Word fold_in_order(int parts, const Part& of_part, Word* words,
                                                const Combine& combine) {
    for (int i = 0; i < parts; ++i) words[i * count_ + index_] = of_part(i);
    __syncthreads();
    Word* const of_warps = next_array<Word>();
    const int warps = parts * count_ / warp;
    if (index_ < warps) {
      Word of_warp = 0u;
      for (int lane = 0; lane < warp; ++lane)
        of_warp = combine(of_warp, words[index_ * warp + lane]);
      of_warps[index_] = of_warp;
    }
    __syncthreads();
    Word total = 0u;
    for (int i = 0; i < warps; ++i) total = combine(total, of_warps[i]);
    return total;
  }

 private:
  static constexpr int warp = torch::warp_lanes;

  template <class Sum, class Combine>
  __device__ __forceinline__ Sum fold_warps(const Sum* of_warps, int warps, const Sum& empty,
                                            int lanes, const Combine& combine) {
    __syncthreads();
    const int lane = index_ % warp;
    Sum of_lane[1] = {lane < warps ? of_warps[lane] : empty};
    return of_first_lane(fold_lanes<1>(of_lane, lanes, combine), warp);
  }
  template <class Sum>
  __device__ __forceinline__ Sum* next_array() {
    turn_ ^= 1;
    return reinterpret_cast<Sum*>(shared_.words[turn_]);
  }

  shared_sums& shared_;
  int index_;
  int count_;
  int turn_ = 0;
};

}  // namespace samebits::cuda
