// Launching a kernel: the error of this launch, not an older one of the caller's.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

/// Enqueues a kernel. Throws cuda_error, naming `what`, if this launch fails. The runtime's last
/// error may be an older one that the caller has not looked at: it is not read, and a launch that
/// succeeds leaves it in place.
template <class... Parameters>
void launch_kernel(const char* what, void (*kernel)(Parameters...), dim3 blocks, dim3 threads,
                   std::size_t shared_bytes, cudaStream_t stream,
                   std::type_identity_t<Parameters>... arguments) {
  void* addresses[] = {static_cast<void*>(&arguments)..., nullptr};
  check(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), blocks, threads, addresses,
                         shared_bytes, stream),
        what);
}

/// Lets a kernel take more dynamic shared memory than it can by default, 48 KiB. The first call for
/// a kernel on a device clears the runtime's last error; the others leave it in place.
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
