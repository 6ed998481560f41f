// workspace: device memory of one call, from the caller or from the stream's memory pool; and the
// layout of tables in one allocation.
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

/// Places tables one after another in one allocation, each aligned to 256 bytes. Without an
/// allocation: adds up their bytes.
class memory_layout {
 public:
  memory_layout() = default;
  explicit memory_layout(std::byte* first) : first_(first) {}

  /// The address of a table of `count` elements; null without an allocation.
  template <class T>
  T* take(std::size_t count) {
    T* const table = first_ == nullptr ? nullptr : reinterpret_cast<T*>(first_ + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return table;
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::byte* first_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace samebits::cuda
