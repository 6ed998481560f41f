// allocation: owns memory of the device, or mapped host memory, and frees it with the owner.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

/// Owner of at most one allocation. A second call of on_device() or on_host() frees the first one.
class allocation {
 public:
  allocation() = default;
  ~allocation() { release(); }
  allocation(const allocation&) = delete;
  allocation& operator=(const allocation&) = delete;

  /// Allocates device memory. `what` names the call in errors.
  std::byte* on_device(std::size_t bytes, const char* what) {
    release();
    check(cudaMalloc(&data_, bytes), what);
    return static_cast<std::byte*>(data_);
  }
  /// Allocates zeroed page-locked host memory that host and devices can read and write.
  std::byte* on_host(std::size_t bytes, const char* what) {
    release();
    shared_ = true;
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped | cudaHostAllocPortable), what);
    std::memset(data_, 0, bytes);
    return static_cast<std::byte*>(data_);
  }

 private:
  void release() {
    if (data_ == nullptr) return;
    if ((shared_ ? cudaFreeHost(data_) : cudaFree(data_)) != cudaSuccess) (void)cudaGetLastError();
    data_ = nullptr;
    shared_ = false;
  }

  void* data_ = nullptr;
  bool shared_ = false;
};

}  // namespace samebits::cuda
