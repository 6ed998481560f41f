// Launches a kernel and reports the error of this launch only.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
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

}  // namespace samebits::cuda
