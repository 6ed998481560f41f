// Launches a kernel and reports the error of this launch only; grids of launches.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

/// Enqueues a kernel. Throws cuda_error, naming `what`, if this launch fails. The runtime's last
/// error may be an older error of the caller: launch_kernel() does not read it, and a successful
/// launch does not clear it.
template <class... Parameters>
void launch_kernel(const char* what, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                   std::size_t shared_bytes, cudaStream_t stream,
                   std::type_identity_t<Parameters>... arguments) {
  void* addresses[] = {static_cast<void*>(&arguments)..., nullptr};
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, threads, addresses,
                         shared_bytes, stream),
        what);
}

/// Lets a kernel use more dynamic shared memory than the default of 48 KiB. The first call for a
/// kernel on a device clears the runtime's last error; later calls do not.
template <class... Parameters>
void allow_shared_memory(const char* what, void (*kernel)(Parameters...), std::size_t bytes) {
  const auto* const address = reinterpret_cast<const void*>(kernel);
  cudaFuncAttributes now;
  check(cudaFuncGetAttributes(&now, address), what);
  if (now.maxDynamicSharedSizeBytes >= static_cast<int>(bytes)) return;
  check(cudaFuncSetAttribute(address, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(bytes)),
        what);
}

/// Blocks of a grid-stride launch over `items`: from 1 to `most`, by default more than fill any GPU.
inline unsigned grid_for(std::uint64_t items, std::uint64_t items_a_block,
                         std::uint64_t most = 1u << 20) {
  const std::uint64_t blocks = (items + items_a_block - 1) / items_a_block;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, most));
}

/// The same, with at most as many blocks of the kernel as the GPU holds at once.
template <class Kernel>
unsigned resident_grid(Kernel kernel, int threads, std::uint64_t items,
                       std::uint64_t items_a_block) {
  int device = 0, processors = 0, resident = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "the number of processors");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0),
        "blocks per processor");
  return grid_for(items, items_a_block,
                  static_cast<std::uint64_t>(std::max(processors * resident, 1)));
}

}  // namespace samebits::cuda
