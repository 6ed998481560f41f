// Launch shape of the kernels over plans: a warp takes chunk after chunk.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "backends/cuda/error.hpp"
#include "numerics/plan.hpp"

namespace samebits::cuda {

inline constexpr int plan_threads = 256;
/// Blocks per processor that registers must leave room for: half of the threads it can hold.
inline constexpr int plan_residents = 4;

/// Calls work(row, chunk, chunk's number, lane) with all lanes of a warp.
template <class Work>
__device__ __forceinline__ void for_each_chunk(const numerics::plan_tables& plan,
                                               const Work& work) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint64_t warps = std::uint64_t{gridDim.x} * (plan_threads / 32);
  std::uint64_t chunk = (std::uint64_t{blockIdx.x} * plan_threads + threadIdx.x) / 32;
  if (chunk >= plan.chunks) return;
  std::uint32_t tensor = plan.row_of_chunk[chunk];
  for (;;) {
    // The next chunk's tensor is looked up while this one's elements are under way.
    const std::uint64_t next = chunk + warps;
    const bool last = next >= plan.chunks;
    const std::uint32_t next_tensor = last ? 0 : plan.row_of_chunk[next];
    const numerics::plan_row row = plan.rows[tensor];
    work(row, numerics::chunk_of(row, tensor, chunk), chunk, lane);
    if (last) return;
    chunk = next;
    tensor = next_tensor;
  }
}

/// Blocks that fill the GPU, and no more than there is work for. A block then reads fewer than 2^32
/// elements of anything that fits the GPU's memory.
template <class Kernel>
unsigned plan_blocks(const numerics::plan_tables& plan, Kernel kernel) {
  int device = 0, processors = 0, resident = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "the number of processors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, plan_threads, 0),
        "blocks per processor");
  constexpr std::uint64_t chunks_of_block = plan_threads / 32;
  const std::uint64_t wanted = (plan.chunks + chunks_of_block - 1) / chunks_of_block;
  const auto most = static_cast<std::uint64_t>(std::max(processors * resident, 1));
  return static_cast<unsigned>(std::max<std::uint64_t>(std::min(wanted, most), 1));
}

}  // namespace samebits::cuda
