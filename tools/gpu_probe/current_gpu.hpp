// The current GPU as the probes see it, and arrays in its memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <vector>

#include "backends/cuda/common/allocation.hpp"
#include "backends/cuda/common/error.hpp"

namespace samebits::cuda {

/// Why the current GPU cannot run a kernel: there is none, or this build lacks the kernel for its
/// architecture. Empty if it can.
template <class Kernel>
std::string why_not_runnable(Kernel* kernel) {
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
  if (const cudaError_t e = cudaFuncGetAttributes(&attributes, kernel); e != cudaSuccess) {
    return failed("this build has no kernels for the GPU", e);
  }
  return {};
}

inline int current_gpu() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

inline cudaDeviceProp gpu_properties() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, current_gpu()), "cudaGetDeviceProperties");
  return properties;
}

/// One property, which takes less time than all.
inline int gpu_attribute(cudaDeviceAttr what) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, what, current_gpu()), "cudaDeviceGetAttribute");
  return value;
}

/// The compute capability, as 10 * major + minor.
inline int gpu_capability() {
  return 10 * gpu_attribute(cudaDevAttrComputeCapabilityMajor) +
         gpu_attribute(cudaDevAttrComputeCapabilityMinor);
}

/// An array in device memory that starts as zeros or as a copy of host memory.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t count) : device_array(nullptr, count) {}
  device_array(const T* from, std::size_t count)
      : count_(count),
        data_(reinterpret_cast<T*>(memory_.on_device(count * sizeof(T), "cudaMalloc"))) {
    if (from == nullptr) {
      check(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
    } else {
      check(cudaMemcpy(data_, from, count * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::vector<T> read() const { return read(count_); }
  [[nodiscard]] std::vector<T> read(std::size_t count) const {
    std::vector<T> all(count);
    check(cudaMemcpy(all.data(), data_, count * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return all;
  }

 private:
  allocation memory_;
  std::size_t count_;
  T* data_;
};

}  // namespace samebits::cuda
