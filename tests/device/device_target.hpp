// The CUDA backends as targets of array operations: memory of a GPU for batches, a stream, ranks.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "device/captured_graph.hpp"
#include "device/device_copy.hpp"
#include "device/device_ranks.hpp"
#include "engine/core/problem.hpp"
#include "engine/core/target.hpp"

namespace samebits::support {

/// Where the memory of a batch lies.
enum class placement : std::uint8_t {
  block,    ///< one block of device memory
  managed,  ///< one block of managed memory
  apart,    ///< an allocation for each buffer, which ends with it: compute-sanitizer sees beyond it
};

class device_target : public array_target {
 public:
  explicit device_target(std::string backend, placement where = placement::block)
      : backend_(std::move(backend)), placement_(where) {}
  ~device_target() override {
    cudaStreamSynchronize(stream_.get());
    cudaFree(memory_);
  }
  device_target(const device_target&) = delete;
  device_target& operator=(const device_target&) = delete;

  [[nodiscard]] std::string_view backend() const override { return backend_; }
  [[nodiscard]] memory_space space() const override { return memory_space::device; }
  [[nodiscard]] executor where(int) const override { return on_stream(stream_.get(), backend_); }

  void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
    upload(memory);
    work(base());
    download(memory);
  }
  [[nodiscard]] returned_values run(const any_case& c, const call_site& site) const override {
    if (placement_ != placement::apart) return c.call(site);
    std::vector<std::unique_ptr<void, cuda_free>> blocks;
    call_site apart = site;
    for (matrix_view& v : apart.views) {
      const std::size_t shift = reinterpret_cast<std::uintptr_t>(v.data) % 16;
      if (spanned_bytes(v) == 0) continue;
      void* block = nullptr;
      check_cuda(cudaMalloc(&block, shift + spanned_bytes(v)), "cudaMalloc");
      blocks.emplace_back(block);
      const matrix_view from = v;
      v.data = static_cast<std::byte*>(block) + shift;
      copy(v, from);
    }
    check_cuda(cudaStreamSynchronize(stream_.get()), "copies");  // ranks have other streams
    returned_values returned = c.call(apart);
    check_cuda(cudaDeviceSynchronize(), "the call");
    for (std::size_t i = 0; i < site.views.size(); ++i) copy(site.views[i], apart.views[i]);
    check_cuda(cudaStreamSynchronize(stream_.get()), "copies");
    return returned;
  }
  void copy(const matrix_view& to, const matrix_view& from) const override {
    const std::size_t bytes = spanned_bytes(to);
    if (bytes == 0) return;
    check_cuda(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, stream_.get()),
               "copy on the device");
  }
  void simulate_ranks(int count, const std::function<void(communicator&)>& body) const override {
    simulate_device_ranks(streams_, count, body);
  }

 protected:
  [[nodiscard]] cudaStream_t stream() const { return stream_.get(); }
  [[nodiscard]] std::byte* base() const { return static_cast<std::byte*>(memory_); }
  /// Bytes to the beginning of the block, which grows if it must.
  void upload(std::span<const std::byte> bytes) {
    if (bytes.size() > size_) {
      check_cuda(cudaFree(memory_), "cudaFree");
      memory_ = nullptr, size_ = 0;
      check_cuda(placement_ == placement::managed ? cudaMallocManaged(&memory_, bytes.size())
                                                  : cudaMalloc(&memory_, bytes.size()),
                 "allocation");
      size_ = bytes.size();
    }
    if (bytes.empty()) return;
    check_cuda(cudaMemcpyAsync(memory_, bytes.data(), bytes.size(), cudaMemcpyDefault, stream()),
               "copy to the device");
    check_cuda(cudaStreamSynchronize(stream()), "copy to the device");  // ranks have other streams
  }
  void download(std::span<std::byte> bytes) const {
    check_cuda(cudaDeviceSynchronize(), "the calls of the batch");
    if (bytes.empty()) return;
    check_cuda(cudaMemcpy(bytes.data(), memory_, bytes.size(), cudaMemcpyDefault),
               "copy from the device");
  }

 private:
  struct cuda_free {
    void operator()(void* block) const { cudaFree(block); }
  };

  std::string backend_;
  placement placement_;
  own_stream stream_;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
  device_streams streams_;
};

/// Captures what each case enqueues, then replays the graphs of all cases twice, each time from the
/// memory of the batch.
class captured_target final : public device_target {
 public:
  using device_target::device_target;

  void enqueue(const std::function<void()>& calls) const override {
    graphs_.push_back(std::make_unique<captured_graph>(stream(), calls));
  }
  void over(std::span<std::byte> memory, const std::function<void(std::byte*)>& work) override {
    graphs_.clear();
    upload(memory);
    work(base());
    std::vector<std::byte> second(memory.begin(), memory.end());
    for (const std::span<std::byte> turn : {memory, std::span(second)}) {
      upload(turn);
      for (const auto& graph : graphs_) graph->launch();
      download(turn);
    }
    graphs_.clear();
    if (!std::equal(memory.begin(), memory.end(), second.begin())) {
      throw std::runtime_error("the second replay left other bytes than the first");
    }
  }

 private:
  mutable std::vector<std::unique_ptr<captured_graph>> graphs_;
};

}  // namespace samebits::support
