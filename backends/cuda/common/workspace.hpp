// workspace: device memory of one call, from the caller or from the stream's memory pool.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

/// Owner of a call's workspace. Memory from the pool is freed in stream order.
class workspace {
 public:
  /// Uses `given`. If `given` is null, takes `bytes` from the stream's memory pool, and frees them
  /// in stream order.
  workspace(std::byte* given, std::size_t bytes, cudaStream_t stream, const char* what)
      : data_(given), stream_(stream), owned_(given == nullptr && bytes != 0) {
    if (!owned_) return;
    void* memory = nullptr;
    check(cudaMallocAsync(&memory, bytes, stream), what);
    data_ = static_cast<std::byte*>(memory);
  }
  ~workspace() {
    if (owned_) cudaFreeAsync(data_, stream_);
  }
  workspace(const workspace&) = delete;
  workspace& operator=(const workspace&) = delete;
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  cudaStream_t stream_;
  bool owned_;
};

}  // namespace samebits::cuda
