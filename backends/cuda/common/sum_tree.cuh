// Sums on the GPU: the fixed tree of contract §6 over a chunk, the lanes of a warp and the threads
// of a block. Sums of squares use the hardware's binary64 or the definition in integers; neither
// changes a bit.
#pragma once

#include <cstdint>

#include "numerics/sums/sum_tree.hpp"
#include "numerics/tensor_list/inspect.hpp"

namespace samebits::cuda {

inline constexpr unsigned all_lanes = 0xFFFFFFFFu;

/// The definition.
struct integer_sums {
  using node = std::uint64_t;
  __device__ static node square(std::uint32_t x) { return numerics::square(x); }
  __device__ static node add(node a, node b) { return numerics::add_squares(a, b); }
  __device__ static node from_bits(std::uint64_t bits) { return bits; }
  /// What stands for leaves that are not there: no sum of squares is below +0.
  __device__ static node nothing() { return 0; }
  __device__ static std::uint64_t bits(node a) { return a; }
};

/// The GPU's binary64 addition and multiplication: IEEE 754, rounded to nearest even. A NaN is the
/// canonical one once bits() has been taken.
struct hardware_sums {
  using node = double;
  __device__ __forceinline__ static node square(std::uint32_t x) {
    const double wide = static_cast<double>(__uint_as_float(x));
    return __dmul_rn(wide, wide);
  }
  /// RN(RN(x * x) + RN(y * y)) of widened binary32: both squares are exact, so is the product in
  /// the fma, and one rounding is left.
  __device__ __forceinline__ static node square_pair(float x, float y) {
    const double a = static_cast<double>(x), b = static_cast<double>(y);
    return __fma_rn(a, a, __dmul_rn(b, b));
  }
  __device__ __forceinline__ static node add(node a, node b) { return __dadd_rn(a, b); }
  __device__ __forceinline__ static node nothing() { return 0.0; }
  __device__ __forceinline__ static node from_bits(std::uint64_t bits) {
    return __longlong_as_double(static_cast<long long>(bits));
  }
  __device__ __forceinline__ static std::uint64_t bits(node a) {
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(a));
    return bits > numerics::binary64::inf ? numerics::binary64::nan : bits;
  }
};

/// The node over 2^Levels neighbouring lanes, whose own nodes are in lane order; in each of them.
template <class Sums, int From = 0, int To = 5>
__device__ __forceinline__ typename Sums::node warp_node(typename Sums::node node) {
#pragma unroll
  for (int bit = From; bit < To; ++bit) {
    node = Sums::add(node, __shfl_xor_sync(all_lanes, node, 1 << bit));
  }
  return node;
}

/// A chunk of 2^12 leaves that a warp reads in 2^TurnBits turns, every lane a vector a turn: the
/// node of lane l's vector in turn t is number 32 * t + l of its level.
///
/// Two turns are added in half as many steps as two sums in every lane would take: exchanged() adds
/// the first in lanes where a bit is 0, and the second where it is 1.
template <class Sums>
struct turn_tree {
  using node = typename Sums::node;

  /// The nodes of turns `even` and `odd` over lanes that differ in the bit.
  template <int Bit>
  __device__ __forceinline__ static node exchanged(node even, node odd) {
    const bool upper = (threadIdx.x & (1u << Bit)) != 0;
    const node kept = upper ? odd : even;
    const node sent = upper ? even : odd;
    return Sums::add(kept, __shfl_xor_sync(all_lanes, sent, 1 << Bit));
  }

  /// Of the nodes of 2^Bits turns.
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

  /// Of 2^Bits turns from `first` on; of_group(turn) is the node of 2^GroupBits turns.
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

  /// The chunk's node, in every lane.
  template <int TurnBits, int GroupBits, class OfGroup>
  __device__ __forceinline__ static node of_chunk(const OfGroup& of_group) {
    const node all = of_turns<TurnBits, GroupBits>(0, of_group);
    // Lane bits from TurnBits on are still those of vectors; the ones below are those of turns.
    return warp_node<Sums, 0, TurnBits>(warp_node<Sums, TurnBits, 5>(all));
  }
};

/// The sum of the leaves [0, count), Sums::nothing() of none, which all threads of a block form
/// together; in thread 0.
///
/// leaf(i) is called once for each i, by some thread, for Leaves neighbours at a time. blockDim.x
/// is Threads, a multiple of 32 whose warps are a power of two, as is Leaves; `scratch` is shared
/// and this call's alone until the next
/// __syncthreads().
template <class Sums, int Threads, int Leaves = 2>
struct block_tree {
  using node = typename Sums::node;
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
    const node zero = Sums::nothing();
    std::uint64_t done = 0;  // of thread 0: complete nodes of `step` leaves
    int turn = 0;
    for (std::uint64_t first = 0; first < count; first += step, turn ^= 1) {
      const std::uint64_t i = first + Leaves * threadIdx.x;
      node nodes[Leaves];
#pragma unroll
      for (int k = 0; k < Leaves; ++k) nodes[k] = i + k < count ? leaf(i + k) : zero;
#pragma unroll
      for (int width = Leaves / 2; width > 0; width /= 2) {
#pragma unroll
        for (int k = 0; k < width; ++k) nodes[k] = Sums::add(nodes[2 * k], nodes[2 * k + 1]);
      }
      const node own = warp_node<Sums>(nodes[0]);
      if (lane == 0) s.of_warp[turn][warp] = own;
      __syncthreads();  // two sets of places: one barrier a turn is enough
      if (warp == 0) {
        node all = lane < warps ? s.of_warp[turn][lane] : zero;
        all = warp_node<Sums>(all);
        if (lane == 0) {
          numerics::append_leaf(s.waiting, done, all,
                                [](node a, node b) { return Sums::add(a, b); });
        }
      }
    }
    // What thread 0 alone uses is loaded by others as well, where the compiler looks ahead.
    __syncthreads();
    if (threadIdx.x != 0) return zero;
    return numerics::root_of_tree(s.waiting, done, zero,
                                  [](node a, node b) { return Sums::add(a, b); });
  }
};

}  // namespace samebits::cuda
