// Allocation: memory of the device, or of device and host, that lives as long as its owner.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

class allocation {
 public:
  allocation() = default;
  ~allocation() { release(); }
  allocation(const allocation&) = delete;
  allocation& operator=(const allocation&) = delete;

  std::byte* on_device(std::size_t bytes, const char* what) {
    release();
    check(cudaMalloc(&data_, bytes), what);
    return static_cast<std::byte*>(data_);
  }
  /// Zeros that both see.
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
