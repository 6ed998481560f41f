// Statistics of a quantization on the device: the types and combination steps of partial sums and
// counts, and the launch that combines all partial statistics of a call.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/launch.cuh"
#include "numerics/quantize/statistics.hpp"
#include "samebits/core/config.hpp"
#include "samebits/quantize.hpp"

namespace samebits::cuda {

using numerics::quantize_counts;
using numerics::quantized_element;

/// One partial sum of each of the two sums of contract §6: sum of x^2 (signal) and of (x - x')^2
/// (noise), x' being the dequantized code.
struct sum_node {
  double signal = 0, noise = 0;
};

/// The combined partial sum of two neighbours, `a` the left one.
__device__ __forceinline__ sum_node joined(const sum_node& a, const sum_node& b) {
  return {__dadd_rn(a.signal, b.signal), __dadd_rn(a.noise, b.noise)};
}

__device__ __forceinline__ double joined(double a, double b) { return __dadd_rn(a, b); }

/// Combines N neighbouring partial sums, N a power of two, into n[0].
template <unsigned N, class Node>
__device__ __forceinline__ void join_neighbours(Node* n) {
#pragma unroll
  for (unsigned i = 0; i < N / 2; ++i) n[i] = joined(n[2 * i], n[2 * i + 1]);
  if constexpr (N > 2) join_neighbours<N / 2>(n);
}

/// The value held by the lane whose number differs in the bit `apart`.
__device__ __forceinline__ sum_node of_lane(const sum_node& node, int apart) {
  return {__shfl_xor_sync(0xFFFFFFFFu, node.signal, apart),
          __shfl_xor_sync(0xFFFFFFFFu, node.noise, apart)};
}

/// Combines the partial sums of `lanes` neighbouring lanes, a power of two, in lane order. Every
/// lane gets the result.
__device__ __forceinline__ sum_node joined_lanes(sum_node node, int lanes) {
  for (int apart = 1; apart < lanes; apart <<= 1) node = joined(node, of_lane(node, apart));
  return node;
}

/// Combines n partial sums in shared memory, n at most Most, into nodes[0]. A last partial sum
/// without a neighbour passes up unchanged. All threads of the block must call.
template <unsigned Most>
__device__ void join_nodes(sum_node* nodes, unsigned n) {
  constexpr unsigned of_thread = (Most / 2 + block_threads - 1) / block_threads;
  while (n > 1) {
    const unsigned next = (n + 1) / 2;
    sum_node up[of_thread];
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < of_thread; ++k) {
      const unsigned j = threadIdx.x + k * block_threads;
      if (j < next) up[k] = 2 * j + 1 < n ? joined(nodes[2 * j], nodes[2 * j + 1]) : nodes[2 * j];
    }
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < of_thread; ++k) {
      const unsigned j = threadIdx.x + k * block_threads;
      if (j < next) nodes[j] = up[k];
    }
    n = next;
  }
  __syncthreads();
}

/// The value held by the lane whose number differs in the bit `apart`.
__device__ __forceinline__ quantize_counts of_lane(const quantize_counts& c, int apart) {
  const auto other = [apart](auto n) { return __shfl_xor_sync(0xFFFFFFFFu, n, apart); };
  return {other(c.zeros),     other(c.nan),  other(c.inf),        other(c.underflowed),
          other(c.saturated), other(c.amax), other(c.min_nonzero)};
}

__device__ __forceinline__ double double_of(std::uint32_t bits) {
  return static_cast<double>(__uint_as_float(bits));
}

/// The inputs of the two sums for one element: x^2 and (x - restored)^2; +0 if either number is not
/// finite.
__device__ __forceinline__ sum_node leaf_of(std::uint32_t x, std::uint32_t restored) {
  if (!numerics::adds_squares(x, restored)) return {};
  const double value = double_of(x), error = __dsub_rn(value, double_of(restored));
  return {__dmul_rn(value, value), __dmul_rn(error, error)};
}

/// Partial statistics in the workspace. The partial sums (`nodes`) are in element order. Each one
/// is the sum of a complete subtree of contract §6; only the last subtree may be incomplete.
struct statistics_parts {
  sum_node* nodes;
  quantize_counts* counts;
  std::uint64_t node_count, count_count;
  std::uint32_t* arrived;  ///< finished blocks; 0 before launch_total()
};

/// Bytes of the partial statistics and of the further levels that launch_total() writes.
std::size_t statistics_bytes(std::uint64_t nodes, std::uint64_t counts);
/// The partial statistics at the beginning of `memory`, which is aligned to 16 bytes.
statistics_parts parts_at(std::byte* memory, std::uint64_t nodes, std::uint64_t counts);
/// Enqueues the kernels that combine all partial statistics into *statistics. The kernel that
/// writes the partial statistics must also set *parts.arrived to 0.
///
/// @param elements elements of the matrix, reported in the statistics
/// @param skip null or device memory; nothing is written if *skip is not 0
void launch_total(const statistics_parts& parts, std::uint64_t elements,
                  quantize_statistics* statistics, const std::uint32_t* skip, cudaStream_t stream);

}  // namespace samebits::cuda
