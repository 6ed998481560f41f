// Sums in the fixed tree of contract §6, over a chunk, the lanes of a warp or the threads of a
// block.
//
// The template parameter Arithmetic is an Arithmetic policy (numerics/arithmetic/by_definition.hpp),
// for sums of squares, or signed_sums (backends/cuda/reductions/reduction_parts.cuh). The trees use
// its type partial_sum, the sum of an aligned subtree, add_partial_sums() and no_partial_sum().
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "numerics/sums/sum_tree.hpp"
#include "numerics/tensor_list/inspect.hpp"

namespace samebits::cuda {

/// Sums the partial sums of 2^(To - From) lanes, in lane order: lanes whose numbers differ only in
/// bits From to To - 1. Each of these lanes gets the sum.
template <class Arithmetic, int From = 0, int To = 5>
__device__ __forceinline__ typename Arithmetic::partial_sum warp_partial_sum(
    typename Arithmetic::partial_sum partial_sum) {
#pragma unroll
  for (int bit = From; bit < To; ++bit) {
    partial_sum = Arithmetic::add_partial_sums(partial_sum, of_lane(partial_sum, 1 << bit));
  }
  return partial_sum;
}

/// Sums a chunk of 2^12 inputs. One warp reads the chunk in 2^TurnBits turns, one vector per lane
/// and turn. The partial sum of lane l's vector in turn t is number 32 * t + l of its level.
///
/// turn 0:  lane 0  lane 1 ... lane 31     partial sums  0 .. 31 of the level
/// turn 1:  lane 0  lane 1 ... lane 31     partial sums 32 .. 63
///
/// exchanged() adds two turns in half as many steps as two sums in every lane. Lanes whose bit is 0
/// add the first turn, lanes whose bit is 1 the second turn.
template <class Arithmetic>
struct turn_tree {
  using partial_sum = typename Arithmetic::partial_sum;

  /// Adds the partial sums of two turns over pairs of lanes that differ in `Bit`. The lane whose
  /// bit is 0 gets the sum of turn `even`, the other lane gets the sum of turn `odd`.
  template <int Bit>
  __device__ __forceinline__ static partial_sum exchanged(partial_sum even, partial_sum odd) {
    const bool upper = (threadIdx.x & (1u << Bit)) != 0;
    const partial_sum kept = upper ? odd : even;
    const partial_sum sent = upper ? even : odd;
    return Arithmetic::add_partial_sums(kept, of_lane(sent, 1 << Bit));
  }

  /// Combines 2^Bits turns, starting with turn `first`. of_group(turn) returns the combined partial
  /// sums of 2^GroupBits turns.
  template <int Bits, int GroupBits, class OfGroup>
  __device__ __forceinline__ static partial_sum of_turns(int first, const OfGroup& of_group) {
    if constexpr (Bits == GroupBits) {
      return of_group(first);
    } else {
      const partial_sum even = of_turns<Bits - 1, GroupBits>(first, of_group);
      const partial_sum odd = of_turns<Bits - 1, GroupBits>(first + (1 << (Bits - 1)), of_group);
      return exchanged<Bits - 1>(even, odd);
    }
  }

  /// The chunk's sum, in every lane.
  template <int TurnBits, int GroupBits, class OfGroup>
  __device__ __forceinline__ static partial_sum of_chunk(const OfGroup& of_group) {
    const partial_sum all = of_turns<TurnBits, GroupBits>(0, of_group);
    // Lane bits from TurnBits upward still number vectors; the bits below number turns.
    return warp_partial_sum<Arithmetic, 0, TurnBits>(
        warp_partial_sum<Arithmetic, TurnBits, 5>(all));
  }
};

/// Combines N neighbouring partial sums, N a power of two, into the first one.
template <class Arithmetic, int N>
__device__ __forceinline__ void combine_neighbours(typename Arithmetic::partial_sum* s) {
#pragma unroll
  for (int k = 0; k < N / 2; ++k) s[k] = Arithmetic::add_partial_sums(s[2 * k], s[2 * k + 1]);
  if constexpr (N > 2) combine_neighbours<Arithmetic, N / 2>(s);
}

/// Sums the inputs [0, count), computed by all threads of a block. Thread 0 gets the sum;
/// Arithmetic::no_partial_sum() if count is 0.
///
/// input(i) returns input i and is called once for each i, by some thread, for Inputs neighbours at
/// a time. Requires blockDim.x == Threads, a multiple of 32 with a power of two of warps, and
/// Leaves a power of two. `scratch` is shared memory that no other code uses before the next
/// __syncthreads().
template <class Arithmetic, int Threads, int Inputs = 2>
struct block_tree {
  using partial_sum = typename Arithmetic::partial_sum;
  static constexpr int warps = Threads / 32;
  static_assert(warps * 32 == Threads && (warps & (warps - 1)) == 0 && warps <= 32);

  struct scratch {
    partial_sum of_warp[2][warps];
    partial_sum waiting[64];
  };

  template <class Input>
  __device__ static partial_sum sum(std::uint64_t count, scratch& s, const Input& input) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr std::uint64_t step = std::uint64_t{Inputs} * Threads;
    const partial_sum zero = Arithmetic::no_partial_sum();
    std::uint64_t done = 0;  // in thread 0: complete partial sums of `step` inputs
    int turn = 0;
    for (std::uint64_t first = 0; first < count; first += step, turn ^= 1) {
      const std::uint64_t i = first + Inputs * threadIdx.x;
      partial_sum partial_sums[Inputs];
#pragma unroll
      for (int k = 0; k < Inputs; ++k) partial_sums[k] = i + k < count ? input(i + k) : zero;
      combine_neighbours<Arithmetic, Inputs>(partial_sums);
      const partial_sum own = warp_partial_sum<Arithmetic>(partial_sums[0]);
      if (lane == 0) s.of_warp[turn][warp] = own;
      __syncthreads();  // of_warp[] has two halves, so one barrier a turn is enough
      if (warp == 0) {
        partial_sum all = lane < warps ? s.of_warp[turn][lane] : zero;
        all = warp_partial_sum<Arithmetic>(all);
        if (lane == 0) {
          numerics::append_input(s.waiting, done, all, [](partial_sum a, partial_sum b) {
            return Arithmetic::add_partial_sums(a, b);
          });
        }
      }
    }
    // Other threads load s.waiting speculatively, although thread 0 alone uses it.
    __syncthreads();
    if (threadIdx.x != 0) return zero;
    return numerics::root_of_tree(s.waiting, done, zero, [](partial_sum a, partial_sum b) {
      return Arithmetic::add_partial_sums(a, b);
    });
  }
};

}  // namespace samebits::cuda
