// Comparisons on the device, and of results of a function of an index on the device and on the host.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/device/device_copy.hpp"

namespace samebits::support {

struct difference {
  unsigned long long count;
  unsigned long long first;
};

/// Calls f(i) for the elements of the calling thread.
template <class Function>
__device__ void for_elements(std::int64_t count, const Function& f) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    f(i);
  }
}

__device__ inline void note(difference* seen, std::int64_t i) {
  atomicAdd(&seen->count, 1ull);
  atomicMin(&seen->first, static_cast<unsigned long long>(i));
}

/// What compare(difference*) notes on the device.
template <class Compare>
difference seen_by(const Compare& compare) {
  difference seen = {0, ~0ull};
  const device_bytes there(&seen, sizeof(seen));
  compare(there.as<difference>());
  check_cuda(cudaGetLastError(), "compare kernel");
  check_cuda(cudaMemcpy(&seen, there.data(), sizeof(seen), cudaMemcpyDeviceToHost), "compare");
  return seen;
}

/// compare(difference*) notes nothing.
template <class Compare>
void expect_none(const Compare& compare, std::size_t array) {
  const difference seen = seen_by(compare);
  EXPECT_EQ(seen.count, 0u) << "array " << array << ", first at element " << seen.first;
}

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
  for_elements(static_cast<std::int64_t>(count), [&](std::int64_t i) {
    const auto at = static_cast<std::uint64_t>(i);
    if constexpr (requires { result.on_gpu(at); }) {
      out[i] = result.on_gpu(at);
    } else {
      out[i] = result.at(at);
    }
  });
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
