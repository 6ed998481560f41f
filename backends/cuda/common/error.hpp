// Turns errors of the CUDA runtime into exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "samebits/error.hpp"

namespace samebits::cuda {

/// Throws cuda_error, naming `what`, for anything but success. First clears the runtime's last
/// error, so that the next call does not report the same error again.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  throw cuda_error(
      std::string(what) + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error),
      static_cast<int>(error));
}

}  // namespace samebits::cuda
