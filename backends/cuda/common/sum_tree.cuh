// Sums in the fixed tree of contract §6, over a chunk, the lanes of a warp or the threads of a
// block.
//
// The template parameter Arithmetic is an Arithmetic policy (numerics/arithmetic/by_definition.hpp),
// for sums of squares, or signed_sums (backends/cuda/reductions/reduction_parts.cuh). The trees use
// its node, add_nodes() and no_node(). A node is a partial sum: the sum of an aligned subtree.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "numerics/sums/sum_tree.hpp"
#include "numerics/tensor_list/inspect.hpp"

namespace samebits::cuda {

/// Sums the partial sums of 2^(To - From) lanes, in lane order: lanes whose numbers differ only in
/// bits From to To - 1. Each of these lanes gets the sum.
template <class Arithmetic, int From = 0, int To = 5>
__device__ __forceinline__ typename Arithmetic::node warp_node(typename Arithmetic::node node) {
#pragma unroll
  for (int bit = From; bit < To; ++bit) {
    node = Arithmetic::add_nodes(node, __shfl_xor_sync(all_lanes, node, 1 << bit));
  }
  return node;
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
  using node = typename Arithmetic::node;

  /// Adds the partial sums of two turns over pairs of lanes that differ in `Bit`. The lane whose
  /// bit is 0 gets the sum of turn `even`, the other lane gets the sum of turn `odd`.
  template <int Bit>
  __device__ __forceinline__ static node exchanged(node even, node odd) {
    const bool upper = (threadIdx.x & (1u << Bit)) != 0;
    const node kept = upper ? odd : even;
    const node sent = upper ? even : odd;
    return Arithmetic::add_nodes(kept, __shfl_xor_sync(all_lanes, sent, 1 << Bit));
  }

  /// Combines the partial sums of 2^Bits turns.
  template <int Bits>
  __device__ __forceinline__ static node of_nodes(const node* nodes) {
    if constexpr (Bits == 0) {
      return *nodes;
    } else {
      const node even = of_nodes<Bits - 1>(nodes);
      const node odd = of_nodes<Bits - 1>(nodes + (1 << (Bits - 1)));
      return exchanged<Bits - 1>(even, odd);
    }
  }

  /// Combines 2^Bits turns, starting with turn `first`. of_group(turn) returns the combined partial
  /// sums of 2^GroupBits turns.
  template <int Bits, int GroupBits, class OfGroup>
  __device__ __forceinline__ static node of_turns(int first, const OfGroup& of_group) {
    if constexpr (Bits == GroupBits) {
      return of_group(first);
    } else {
      const node even = of_turns<Bits - 1, GroupBits>(first, of_group);
      const node odd = of_turns<Bits - 1, GroupBits>(first + (1 << (Bits - 1)), of_group);
      return exchanged<Bits - 1>(even, odd);
    }
  }

  /// The chunk's sum, in every lane.
  template <int TurnBits, int GroupBits, class OfGroup>
  __device__ __forceinline__ static node of_chunk(const OfGroup& of_group) {
    const node all = of_turns<TurnBits, GroupBits>(0, of_group);
    // Lane bits from TurnBits upward still number vectors; the bits below number turns.
    return warp_node<Arithmetic, 0, TurnBits>(warp_node<Arithmetic, TurnBits, 5>(all));
  }
};

/// Sums the inputs [0, count), computed by all threads of a block. Thread 0 gets the sum;
/// Arithmetic::no_node() if count is 0.
///
/// leaf(i) returns input i and is called once for each i, by some thread, for Leaves neighbours at
/// a time. Requires blockDim.x == Threads, a multiple of 32 with a power of two of warps, and
/// Leaves a power of two. `scratch` is shared memory that no other code uses before the next
/// __syncthreads().
template <class Arithmetic, int Threads, int Leaves = 2>
struct block_tree {
  using node = typename Arithmetic::node;
  static constexpr int warps = Threads / 32;
  static_assert(warps * 32 == Threads && (warps & (warps - 1)) == 0 && warps <= 32);

  struct scratch {
    node of_warp[2][warps];
    node waiting[64];
  };

  template <class Leaf>
  __device__ static node sum(std::uint64_t count, scratch& s, const Leaf& leaf) {
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    constexpr std::uint64_t step = std::uint64_t{Leaves} * Threads;
    const node zero = Arithmetic::no_node();
    std::uint64_t done = 0;  // in thread 0: complete partial sums of `step` inputs
    int turn = 0;
    for (std::uint64_t first = 0; first < count; first += step, turn ^= 1) {
      const std::uint64_t i = first + Leaves * threadIdx.x;
      node nodes[Leaves];
#pragma unroll
      for (int k = 0; k < Leaves; ++k) nodes[k] = i + k < count ? leaf(i + k) : zero;
#pragma unroll
      for (int width = Leaves / 2; width > 0; width /= 2) {
#pragma unroll
        for (int k = 0; k < width; ++k)
          nodes[k] = Arithmetic::add_nodes(nodes[2 * k], nodes[2 * k + 1]);
      }
      const node own = warp_node<Arithmetic>(nodes[0]);
      if (lane == 0) s.of_warp[turn][warp] = own;
      __syncthreads();  // of_warp[] has two halves, so one barrier a turn is enough
      if (warp == 0) {
        node all = lane < warps ? s.of_warp[turn][lane] : zero;
        all = warp_node<Arithmetic>(all);
        if (lane == 0) {
          numerics::append_leaf(s.waiting, done, all,
                                [](node a, node b) { return Arithmetic::add_nodes(a, b); });
        }
      }
    }
    // Other threads load s.waiting speculatively, although thread 0 alone uses it.
    __syncthreads();
    if (threadIdx.x != 0) return zero;
    return numerics::root_of_tree(s.waiting, done, zero,
                                  [](node a, node b) { return Arithmetic::add_nodes(a, b); });
  }
};

}  // namespace samebits::cuda
