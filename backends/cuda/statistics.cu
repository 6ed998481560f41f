// The total of a quantization's statistics: levels of the sum trees, some at a time.
#include "backends/cuda/statistics.cuh"

#include <algorithm>

namespace samebits::cuda {
namespace {

constexpr unsigned fan_in = 2048;  // nodes that a block joins: 11 levels

std::uint64_t parents(std::uint64_t nodes) { return (nodes + fan_in - 1) / fan_in; }

/// Block b joins nodes [b * fan_in, ...) and its share of the counts.
__global__ void __launch_bounds__(block_threads)
    join_kernel(const statistics_parts from, const statistics_parts to,
                const std::uint64_t elements, quantize_statistics* const total,
                const std::uint32_t* const skip) {
  if (skip != nullptr && *skip != 0) return;
  __shared__ sum_node nodes[fan_in];
  __shared__ element_counts counts[block_threads];
  const std::uint64_t first = std::uint64_t{blockIdx.x} * fan_in;
  const unsigned n = static_cast<unsigned>(min(
      static_cast<std::uint64_t>(fan_in), from.node_count > first ? from.node_count - first : 0));
  for (unsigned i = threadIdx.x; i < n; i += block_threads) nodes[i] = from.nodes[first + i];
  element_counts mine;
  const std::uint64_t share = (from.count_count + gridDim.x - 1) / gridDim.x;
  const std::uint64_t end = min(from.count_count, (blockIdx.x + std::uint64_t{1}) * share);
  for (std::uint64_t i = blockIdx.x * share + threadIdx.x; i < end; i += block_threads) {
    mine.join(from.counts[i]);
  }
  counts[threadIdx.x] = mine;
  for (unsigned half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) counts[threadIdx.x].join(counts[threadIdx.x + half]);
  }
  if (n == 0 && threadIdx.x == 0) nodes[0] = {};  // the sum of nothing
  join_nodes<fan_in>(nodes, n);
  if (threadIdx.x != 0) return;
  if (total == nullptr) {
    to.nodes[blockIdx.x] = nodes[0];
    to.counts[blockIdx.x] = counts[0];
    return;
  }
  const element_counts& c = counts[0];
  total->count = elements;
  total->zeros = c.zeros;
  total->nan = c.nan;
  total->inf = c.inf;
  total->underflowed = c.underflowed;
  total->saturated = c.saturated;
  total->amax = __uint_as_float(c.amax);
  total->min_nonzero =
      c.min_nonzero == element_counts::none ? 0.0f : __uint_as_float(c.min_nonzero);
  total->signal = nodes[0].signal;
  total->noise = nodes[0].noise;
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
