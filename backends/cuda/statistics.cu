// The total of a quantization's statistics: levels of the sum trees, some at a time.
#include "backends/cuda/statistics.cuh"

#include <algorithm>

namespace samebits::cuda {
namespace {

constexpr unsigned fan_in = 2048;  // nodes that a block joins: 11 levels

std::uint64_t parents(std::uint64_t nodes) { return (nodes + fan_in - 1) / fan_in; }

/// Those of the lane `apart` lanes away.
__device__ __forceinline__ sum_node of_lane(const sum_node& node, int apart) {
  return {__shfl_xor_sync(0xFFFFFFFFu, node.signal, apart),
          __shfl_xor_sync(0xFFFFFFFFu, node.noise, apart)};
}
__device__ __forceinline__ element_counts of_lane(const element_counts& c, int apart) {
  const auto other = [apart](auto n) { return __shfl_xor_sync(0xFFFFFFFFu, n, apart); };
  return {other(c.zeros),     other(c.nan),  other(c.inf),        other(c.underflowed),
          other(c.saturated), other(c.amax), other(c.min_nonzero)};
}

/// The root of the tree over nodes of neighbouring lanes.
__device__ __forceinline__ sum_node joined_lanes(sum_node node, int lanes) {
  for (int apart = 1; apart < lanes; apart <<= 1) node = joined(node, of_lane(node, apart));
  return node;
}

/// Block b joins nodes [b * fan_in, ...) and its share of the counts. Missing nodes are +0, which
/// changes no sum: none of them is below that.
__global__ void __launch_bounds__(block_threads)
    join_kernel(const statistics_parts from, const statistics_parts to,
                const std::uint64_t elements, quantize_statistics* const total,
                const std::uint32_t* const skip) {
  if (skip != nullptr && *skip != 0) return;
  constexpr unsigned of_thread = fan_in / block_threads, warps = block_threads / 32;
  static_assert(of_thread == 8);
  __shared__ sum_node nodes[warps];
  __shared__ element_counts counts[warps];
  const std::uint64_t first = std::uint64_t{blockIdx.x} * fan_in + threadIdx.x * of_thread;
  sum_node up[of_thread];
#pragma unroll
  for (unsigned k = 0; k < of_thread; ++k) {
    if (first + k < from.node_count) up[k] = from.nodes[first + k];
  }
  element_counts mine;
  const std::uint64_t share = (from.count_count + gridDim.x - 1) / gridDim.x;
  const std::uint64_t end = min(from.count_count, (blockIdx.x + std::uint64_t{1}) * share);
  for (std::uint64_t i = blockIdx.x * share + threadIdx.x; i < end; i += block_threads) {
    mine.join(from.counts[i]);
  }
#pragma unroll
  for (unsigned n = of_thread; n > 1; n /= 2) {
#pragma unroll
    for (unsigned k = 0; k < n / 2; ++k) up[k] = joined(up[2 * k], up[2 * k + 1]);
  }
  sum_node node = joined_lanes(up[0], 32);
  for (int apart = 1; apart < 32; apart <<= 1) mine.join(of_lane(mine, apart));
  const unsigned warp = threadIdx.x / 32;
  if (threadIdx.x % 32 == 0) nodes[warp] = node, counts[warp] = mine;
  __syncthreads();
  if (warp != 0) return;
  node = joined_lanes(nodes[threadIdx.x % warps], warps);
  element_counts c = counts[threadIdx.x % warps];
  for (unsigned apart = 1; apart < warps; apart <<= 1) {
    c.join(of_lane(c, static_cast<int>(apart)));
  }
  if (threadIdx.x != 0) return;
  if (total == nullptr) {
    to.nodes[blockIdx.x] = node;
    to.counts[blockIdx.x] = c;
    return;
  }
  total->count = elements;
  total->zeros = c.zeros;
  total->nan = c.nan;
  total->inf = c.inf;
  total->underflowed = c.underflowed;
  total->saturated = c.saturated;
  total->amax = __uint_as_float(c.amax);
  total->min_nonzero =
      c.min_nonzero == element_counts::none ? 0.0f : __uint_as_float(c.min_nonzero);
  total->signal = node.signal;
  total->noise = node.noise;
}

statistics_parts parts_after(const statistics_parts& p) {
  const std::uint64_t n = parents(p.node_count);
  auto* const end = reinterpret_cast<std::byte*>(p.counts + p.count_count);
  return parts_at(end, n, n);
}

}  // namespace

statistics_parts parts_at(std::byte* memory, std::uint64_t nodes, std::uint64_t counts) {
  auto* const first = reinterpret_cast<sum_node*>(memory);
  return {first, reinterpret_cast<element_counts*>(first + nodes), nodes, counts};
}

std::size_t statistics_bytes(std::uint64_t nodes, std::uint64_t counts) {
  std::size_t bytes = nodes * sizeof(sum_node) + counts * sizeof(element_counts);
  while (nodes > fan_in) {
    nodes = parents(nodes);
    bytes += nodes * (sizeof(sum_node) + sizeof(element_counts));
  }
  return bytes;
}

void launch_total(const statistics_parts& parts, std::uint64_t elements,
                  quantize_statistics* statistics, const std::uint32_t* skip, cudaStream_t stream) {
  statistics_parts from = parts;
  while (from.node_count > fan_in) {
    const statistics_parts to = parts_after(from);
    join_kernel<<<static_cast<unsigned>(to.node_count), block_threads, 0, stream>>>(
        from, to, elements, nullptr, skip);
    from = to;
  }
  join_kernel<<<1, block_threads, 0, stream>>>(from, from, elements, statistics, skip);
}

}  // namespace samebits::cuda
