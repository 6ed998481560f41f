// Combines the partial statistics of a quantization.
//
// Each level of kernels combines 2048 neighbouring partial sums into one, which is 11 levels of the
// sum trees. In the last level the block that finishes last combines the results of all blocks.
#include "backends/cuda/quantize/statistics.cuh"

#include <algorithm>

#include "backends/cuda/common/error.hpp"
#include "backends/cuda/common/runtime.hpp"
#include "backends/cuda/common/sum_tree.cuh"

namespace samebits::cuda {
namespace {

constexpr unsigned sums_a_block = 2048;    // partial sums that one block combines: 11 levels
constexpr std::size_t arrived_bytes = 16;  // of statistics_parts::arrived, with padding

std::uint64_t parents(std::uint64_t partial_sums) {
  return (partial_sums + sums_a_block - 1) / sums_a_block;
}

/// Statistics of a part of the matrix.
struct combined_part {
  quantize_sums sums;
  quantize_counts counts;
};

/// Combines the partial sums [part * sums_a_block, (part + 1) * sums_a_block) and one of `parts` equal shares
/// of the counts. Thread 0 gets the result; all threads of the block must call.
__device__ __forceinline__ combined_part combine_part(const statistics_parts& from,
                                                      std::uint64_t part, std::uint64_t parts) {
  using tree = block_tree<paired_sums, block_threads, sums_a_block / block_threads>;
  __shared__ typename tree::scratch scratch;
  const std::uint64_t first = part * sums_a_block;
  const std::uint64_t count = min(std::uint64_t{sums_a_block}, from.partial_sum_count - first);
  combined_part all;
  all.sums = tree::sum(count, scratch, [&](std::uint64_t i) {
    return from_other_block(from.partial_sums + first + i);
  });
  if (threadIdx.x < 32) {
    const std::uint64_t share = (from.count_count + parts - 1) / parts;
    const std::uint64_t end = min(from.count_count, (part + 1) * share);
    for (std::uint64_t i = part * share + threadIdx.x; i < end; i += 32) {
      all.counts.combine(from_other_block(from.counts + i));
    }
    for (int apart = 1; apart < 32; apart <<= 1) all.counts.combine(of_lane(all.counts, apart));
  }
  return all;
}

/// Stores the combined statistics in the public structure.
__device__ void store_total(const combined_part& all, std::uint64_t elements,
                            quantize_statistics* total) {
  const quantize_counts& c = all.counts;
  total->elements = elements;
  total->zeros = c.zeros;
  total->nan = c.nan;
  total->inf = c.inf;
  total->underflowed = c.underflowed;
  total->saturated = c.saturated;
  total->amax = __uint_as_float(c.amax);
  total->min_nonzero =
      c.min_nonzero == quantize_counts::none ? 0.0f : __uint_as_float(c.min_nonzero);
  total->signal = all.sums.signal;
  total->noise = all.sums.noise;
}

/// Each block combines one part. If `total` is not null, the launch has at most sums_a_block blocks, and
/// the block that finishes last combines the results of all blocks.
__global__ void __launch_bounds__(block_threads)
    combine_statistics_kernel(const statistics_parts from, const statistics_parts to,
                              const std::uint64_t elements, quantize_statistics* const total,
                              const std::uint32_t* const skip) {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");  // waits for the end of the kernel before
#endif
  if (skip != nullptr && *skip != 0) return;
  const combined_part mine = combine_part(from, blockIdx.x, gridDim.x);
  if (total != nullptr && gridDim.x == 1) {
    if (threadIdx.x == 0) store_total(mine, elements, total);
    return;
  }
  __shared__ bool last;
  if (threadIdx.x == 0) {
    to.partial_sums[blockIdx.x] = mine.sums;
    to.counts[blockIdx.x] = mine.counts;
    __threadfence();
    last = total != nullptr && atomicAdd(from.arrived, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  const combined_part all = combine_part(to, 0, 1);
  if (threadIdx.x == 0) store_total(all, elements, total);
}

/// Launches one level. The kernel's start overlaps the end of the kernel before (CUDA C++
/// Programming Guide, "Programmatic Dependent Launch"); griddepcontrol.wait waits for that end.
void launch_level(std::uint64_t blocks, const statistics_parts& from, const statistics_parts& to,
                  std::uint64_t elements, quantize_statistics* total, const std::uint32_t* skip,
                  cudaStream_t stream) {
  cudaLaunchAttribute overlaps{};
  overlaps.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlaps.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(block_threads);
  config.stream = stream;
  config.attrs = &overlaps;
  config.numAttrs = compiled_capability() >= 90 ? 1 : 0;  // older code does not wait
  check(cudaLaunchKernelEx(&config, combine_statistics_kernel, from, to, elements, total, skip),
        "quantize: statistics");
}

/// The partial statistics that one level makes of `p`; they follow `p` in memory.
statistics_parts parts_after(const statistics_parts& p) {
  const std::uint64_t n = parents(p.partial_sum_count);
  auto* const partial_sums = reinterpret_cast<quantize_sums*>(p.counts + p.count_count);
  return {partial_sums, reinterpret_cast<quantize_counts*>(partial_sums + n), n, n, p.arrived};
}

}  // namespace

statistics_parts parts_at(std::byte* memory, std::uint64_t partial_sums, std::uint64_t counts) {
  auto* const first = reinterpret_cast<quantize_sums*>(memory + arrived_bytes);
  return {first, reinterpret_cast<quantize_counts*>(first + partial_sums), partial_sums, counts,
          reinterpret_cast<std::uint32_t*>(memory)};
}

std::size_t statistics_bytes(std::uint64_t partial_sums, std::uint64_t counts) {
  std::size_t bytes =
      arrived_bytes + partial_sums * sizeof(quantize_sums) + counts * sizeof(quantize_counts);
  while (partial_sums > 1) {
    partial_sums = parents(partial_sums);
    bytes += partial_sums * (sizeof(quantize_sums) + sizeof(quantize_counts));
  }
  return bytes;
}

void launch_total(const statistics_parts& parts, std::uint64_t elements,
                  quantize_statistics* statistics, const std::uint32_t* skip, cudaStream_t stream) {
  statistics_parts from = parts;
  while (parents(from.partial_sum_count) > sums_a_block) {
    const statistics_parts to = parts_after(from);
    launch_level(to.partial_sum_count, from, to, elements, nullptr, skip, stream);
    from = to;
  }
  const std::uint64_t blocks = std::max<std::uint64_t>(parents(from.partial_sum_count), 1);
  launch_level(blocks, from, parts_after(from), elements, statistics, skip, stream);
}

}  // namespace samebits::cuda
