// Table memory: device memory of a table for the kernels of one call.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace samebits::cuda {

/// Memory from a pool of this library, one per device. The pool keeps freed memory until the
/// process ends, so that a call after a synchronization does not wait for new memory. All calls in
/// flight at a time have their own table, which is freed in stream order.
class table_memory {
 public:
  table_memory(std::size_t bytes, cudaStream_t stream, const char* what);
  ~table_memory();
  table_memory(const table_memory&) = delete;
  table_memory& operator=(const table_memory&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  cudaStream_t stream_;
};

}  // namespace samebits::cuda
