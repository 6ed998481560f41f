// A CUDA backend as a target of array operations: device memory for batches, a stream, and ranks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "device/device_copy.hpp"
#include "device/device_ranks.hpp"
#include "engine/core/target.hpp"

namespace samebits::support {

class device_target final : public array_target {
 public:
  explicit device_target(std::string backend) : backend_(std::move(backend)) {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
  }
  ~device_target() override {
    cudaStreamSynchronize(stream_);
    cudaFree(memory_);
    cudaStreamDestroy(stream_);
  }
  device_target(const device_target&) = delete;
  device_target& operator=(const device_target&) = delete;

  [[nodiscard]] std::string_view backend() const override { return backend_; }
  [[nodiscard]] memory_space space() const override { return memory_space::device; }
  [[nodiscard]] executor where(int) const override { return on_stream(stream_, backend_); }

  void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
    if (memory.size() > size_) {
      check_cuda(cudaFree(memory_), "cudaFree");
      memory_ = nullptr, size_ = 0;
      check_cuda(cudaMalloc(&memory_, memory.size()), "cudaMalloc");
      size_ = memory.size();
    }
    if (memory.empty()) return work(static_cast<std::byte*>(memory_));
    check_cuda(
        cudaMemcpyAsync(memory_, memory.data(), memory.size(), cudaMemcpyHostToDevice, stream_),
        "copy to the device");
    check_cuda(cudaStreamSynchronize(stream_), "copy to the device");  // ranks have other streams
    work(static_cast<std::byte*>(memory_));
    check_cuda(cudaDeviceSynchronize(), "the calls of the batch");
    check_cuda(cudaMemcpy(memory.data(), memory_, memory.size(), cudaMemcpyDeviceToHost),
               "copy from the device");
  }
  void copy(const matrix_view& to, const matrix_view& from) const override {
    const std::size_t bytes = spanned_bytes(to);
    if (bytes == 0) return;
    check_cuda(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, stream_),
               "copy on the device");
  }
  void simulate_ranks(int count, const std::function<void(communicator&)>& body) const override {
    simulate_device_ranks(streams_, count, body);
  }

 private:
  std::string backend_;
  cudaStream_t stream_ = nullptr;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  device_streams streams_;
};

}  // namespace samebits::support
