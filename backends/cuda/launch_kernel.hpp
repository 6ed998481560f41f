// Launching a kernel: the error of this launch, not an older one of the caller's.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>

#include "backends/cuda/error.hpp"

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

}  // namespace samebits::cuda
