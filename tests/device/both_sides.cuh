// Results of a function of an index, on the device and on the host.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/device/device_copy.hpp"

namespace samebits::support {

/// Calls f(i) for i in [0, count) on all processors.
template <class Function>
void on_all_cores(std::uint64_t count, const Function& f) {
  const std::uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (std::uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (std::uint64_t i = count * t / threads; i < count * (t + 1) / threads; ++i) f(i);
    });
  }
}

template <class Result, class Word>
__global__ void results_kernel(Result result, Word* out, std::uint64_t count) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += step) {
    if constexpr (requires { result.on_gpu(i); }) {
      out[i] = result.on_gpu(i);
    } else {
      out[i] = result.at(i);
    }
  }
}

/// How many of result.at(i), i < count, differ between the device and the host. A result may have its
/// own steps on the device, result.on_gpu(i).
template <class Result>
std::uint64_t differing(const Result& result, std::uint64_t count) {
  using word = decltype(result.at(count));
  const device_bytes out(count * sizeof(word));
  results_kernel<<<1024, 128>>>(result, out.as<word>(), count);
  check_cuda(cudaGetLastError(), "results_kernel");
  const auto got = contents_of<word>(out);
  std::atomic<std::uint64_t> differ = 0;
  on_all_cores(count, [&](std::uint64_t i) { differ += got[i] != result.at(i); });
  return differ;
}

}  // namespace samebits::support
