// Random options, shapes and data over the backends that take device memory: a batch of cases is
// copied to the device once, converted by one launch per case on one stream, and copied back once.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/convert_batches.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

/// Device memory for batches, as large as the largest so far.
class device_block {
 public:
  device_block() { check(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
  ~device_block() {
    cudaFree(data_);
    cudaStreamDestroy(stream_);
  }
  device_block(const device_block&) = delete;
  device_block& operator=(const device_block&) = delete;

  void run(const std::string& backend, std::span<std::byte> memory,
           const std::vector<batch_call>& calls) {
    if (memory.size() > size_) {
      check(cudaFree(data_), "cudaFree");
      check(cudaMalloc(&data_, memory.size()), "cudaMalloc");
      size_ = memory.size();
    }
    check(cudaMemcpyAsync(data_, memory.data(), memory.size(), cudaMemcpyHostToDevice, stream_),
          "copy to the device");
    const auto there = [&](auto view) {
      view.data = static_cast<std::byte*>(data_) +
                  (static_cast<const std::byte*>(view.data) - memory.data());
      return on_device(view);
    };
    for (const batch_call& c : calls) {
      convert(there(c.in), there(c.out), c.options, on_stream(stream_, backend));
    }
    check(cudaMemcpyAsync(memory.data(), data_, memory.size(), cudaMemcpyDeviceToHost, stream_),
          "copy from the device");
    check(cudaStreamSynchronize(stream_), "the batch");
  }

 private:
  cudaStream_t stream_ = nullptr;
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

void expect_conforms(const std::string& backend, batch_target target) {
  device_block device;
  target.name = backend;
  target.run = [&](std::span<std::byte> memory, const std::vector<batch_call>& calls) {
    device.run(backend, memory, calls);
  };
  const int batches = by_effort(48, 4);
  batch_checker checker(std::move(target), {batches, format_count * format_count,
                                            rc::detail::configuration().testParams.seed});
  const batch_report report = checker.run();
  EXPECT_EQ(report.failure, "");
  EXPECT_EQ(report.cases, static_cast<std::uint64_t>(batches) * format_count * format_count);
  EXPECT_GT(report.elements, 100 * report.cases);
  std::cout << backend << ": " << report.cases << " cases, " << report.elements
            << " elements compared with the oracle\n";
}

TEST(DeviceProperty, Emulated) { expect_conforms("cuda-emulated", {}); }

/// What the native backend has; it would refuse anything else by name, and fail here.
TEST(DeviceProperty, Native) {
  using enum format_id;
  batch_target target;
  target.pairs = {{fp32, e4m3}, {fp32, e5m2}, {fp16, e4m3}, {fp16, e5m2},
                  {bf16, e4m3}, {bf16, e5m2}, {fp32, fp16}, {fp32, bf16}};
  target.rules = {{rounding::nearest_even, overflow::ieee},
                  {rounding::nearest_even, overflow::saturate}};
  expect_conforms("cuda-native", std::move(target));
}

}  // namespace
}  // namespace samebits::support
