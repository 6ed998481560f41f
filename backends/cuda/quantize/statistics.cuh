// Statistics of a quantization on the device: partial sums and counts in the workspace, and their
// total.
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

/// A node of the two sum trees of contract §6.
struct sum_node {
  double signal = 0, noise = 0;
};

/// The parent of neighbours.
__device__ __forceinline__ sum_node joined(const sum_node& a, const sum_node& b) {
  return {__dadd_rn(a.signal, b.signal), __dadd_rn(a.noise, b.noise)};
}

__device__ __forceinline__ double joined(double a, double b) { return __dadd_rn(a, b); }

/// Joins N nodes, a power of two, to the first one.
template <unsigned N, class Node>
__device__ __forceinline__ void join_neighbours(Node* n) {
#pragma unroll
  for (unsigned i = 0; i < N / 2; ++i) n[i] = joined(n[2 * i], n[2 * i + 1]);
  if constexpr (N > 2) join_neighbours<N / 2>(n);
}

/// Those of the lane `apart` lanes away.
__device__ __forceinline__ sum_node of_lane(const sum_node& node, int apart) {
  return {__shfl_xor_sync(0xFFFFFFFFu, node.signal, apart),
          __shfl_xor_sync(0xFFFFFFFFu, node.noise, apart)};
}

/// The root of the tree over nodes of neighbouring lanes.
__device__ __forceinline__ sum_node joined_lanes(sum_node node, int lanes) {
  for (int apart = 1; apart < lanes; apart <<= 1) node = joined(node, of_lane(node, apart));
  return node;
}

/// Joins the first n nodes in shared memory, at most Most, to the first one; all threads of the
/// block come here.
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

/// Those of the lane `apart` lanes away.
__device__ __forceinline__ quantize_counts of_lane(const quantize_counts& c, int apart) {
  const auto other = [apart](auto n) { return __shfl_xor_sync(0xFFFFFFFFu, n, apart); };
  return {other(c.zeros),     other(c.nan),  other(c.inf),        other(c.underflowed),
          other(c.saturated), other(c.amax), other(c.min_nonzero)};
}

__device__ __forceinline__ double double_of(std::uint32_t bits) {
  return static_cast<double>(__uint_as_float(bits));
}

/// The leaves of an element.
__device__ __forceinline__ sum_node leaf_of(std::uint32_t x, std::uint32_t restored) {
  if (!numerics::adds_squares(x, restored)) return {};
  const double value = double_of(x), error = __dsub_rn(value, double_of(restored));
  return {__dmul_rn(value, value), __dmul_rn(error, error)};
}

/// Partial sums and counts in the workspace. Nodes are in the order of the elements, and each is
/// one of the tree or its last, incomplete one.
struct statistics_parts {
  sum_node* nodes;
  quantize_counts* counts;
  std::uint64_t node_count, count_count;
  std::uint32_t* arrived;  ///< blocks of the total; whoever writes the parts sets it to 0
};

/// Bytes of the parts and of what their total needs besides.
std::size_t statistics_bytes(std::uint64_t nodes, std::uint64_t counts);
/// The parts at the beginning of that memory, which is aligned to 16 bytes.
statistics_parts parts_at(std::byte* memory, std::uint64_t nodes, std::uint64_t counts);
/// Enqueues the total. elements: of the matrix. Nothing is written where *skip is not 0.
void launch_total(const statistics_parts& parts, std::uint64_t elements,
                  quantize_statistics* statistics, const std::uint32_t* skip, cudaStream_t stream);

}  // namespace samebits::cuda
