// The CUDA device of the tensor core check: its description, and the run of one job.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/common/error.hpp"
#include "tensor_core_probe/device.hpp"
#include "tensor_core_probe/gpu/kernels.cuh"

namespace samebits::cuda {
namespace {

using backends::tensor_cores::difference;
using backends::tensor_cores::job;
using backends::tensor_cores::outcome;

/// An empty kernel: its attributes tell whether this build has kernels for the GPU.
__global__ void tensor_core_probe() {}

int current_attribute(cudaDeviceAttr what) {
  int device = 0;
  int value = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

int capability() {
  return 10 * current_attribute(cudaDevAttrComputeCapabilityMajor) +
         current_attribute(cudaDevAttrComputeCapabilityMinor);
}

std::string why_unsupported() {
  const auto failed = [](const std::string& what, cudaError_t error) {
    (void)cudaGetLastError();
    return what + ": " + cudaGetErrorString(error);
  };
  int count = 0;
  if (const cudaError_t e = cudaGetDeviceCount(&count); e != cudaSuccess) {
    return failed(
        e == cudaErrorInsufficientDriver ? "no NVIDIA driver, or one too old" : "no usable GPU", e);
  }
  cudaFuncAttributes attributes;
  if (const cudaError_t e = cudaFuncGetAttributes(&attributes, tensor_core_probe);
      e != cudaSuccess) {
    return failed("this build has no kernels for the GPU", e);
  }
  return {};
}

std::string name() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

/// An array in device memory that starts as zeros or as a copy of host memory.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    fill([&] { return cudaMemset(data_, 0, count * sizeof(T)); }, "cudaMemset");
  }
  device_array(const T* from, std::size_t count) : count_(count) {
    check(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    fill([&] { return cudaMemcpy(data_, from, count * sizeof(T), cudaMemcpyHostToDevice); },
         "cudaMemcpy");
  }
  ~device_array() { (void)cudaFree(data_); }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::vector<T> read() const { return read(count_); }
  [[nodiscard]] std::vector<T> read(std::size_t count) const {
    std::vector<T> all(count);
    check(cudaMemcpy(all.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return all;
  }

 private:
  template <class Function>
  void fill(const Function& how, const char* what) {
    if (const cudaError_t e = how(); e != cudaSuccess) {
      (void)cudaFree(data_);
      check(e, what);
    }
  }

  T* data_ = nullptr;
  std::size_t count_;
};

/// Runs a job on the current device and waits for the result.
outcome run(const job& j) {
  const auto lines = static_cast<std::size_t>(rows_of(j.what)) * j.tiles;
  const device_array<std::uint32_t> a(j.a, lines * line_words);
  const device_array<std::uint32_t> b(j.b, std::size_t{j.tiles} * tile_columns * line_words);
  const device_array<std::uint32_t> c(j.c, lines * tile_columns);
  const device_array<std::uint32_t> own(lines * tile_columns);
  const device_array<unsigned long long> differing(1);
  const device_array<unsigned int> found(1);
  const device_array<difference> first(backends::tensor_cores::max_differences);
  const device_job on_device = {
      j.rule,      j.tiles,          backends::tensor_cores::partners_of(j.tiles),
      a.data(),    b.data(),         c.data(),
      own.data(),  differing.data(), found.data(),
      first.data()};
  const tensor_launcher launch = is_wgmma(j.what) ? find_wgmma(j.what) : find_mma(j.what);
  launch(on_device, 8 * current_attribute(cudaDevAttrMultiProcessorCount));
  check(cudaDeviceSynchronize(), "tensor core kernel");
  const std::uint64_t wrong = differing.read()[0];
  const auto shown = std::min<std::uint64_t>(wrong, backends::tensor_cores::max_differences);
  return {own.read(), wrong, first.read(static_cast<std::size_t>(shown))};
}

constexpr backends::tensor_cores::device this_device = {why_unsupported, name, capability, run};

}  // namespace
}  // namespace samebits::cuda

/// The core library finds this function through a weak reference.
extern "C" const samebits::backends::tensor_cores::device* samebits_tensor_core_device() {
  return &samebits::cuda::this_device;
}
