// Compares functions of binary32 on a GPU with their models, in a kernel and on the host.
//
// A function to compare is a struct with these members; operands and results are binary32 bits:
//
//   static constexpr const char* text                        its name
//   __device__ static std::uint32_t hardware(std::uint32_t)  the GPU's result
//   SAMEBITS_HD static std::uint32_t model(std::uint32_t)    the expected result
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "device/device_copy.hpp"
#include "tests/support/effort.hpp"

namespace samebits {

constexpr std::uint64_t function_operands = std::uint64_t{1} << 32;
constexpr std::uint32_t slice = 1u << 26;  // operands of one kernel launch: 256 MiB of results

/// Results that differ, and one operand whose result does.
struct difference {
  unsigned long long count;
  std::uint32_t operand;
};

inline std::string at(const difference& d) {
  char text[32];
  std::snprintf(text, sizeof text, ", operand 0x%08X", d.operand);
  return text;
}

/// Writes the GPU's results at operands first + i * stride, i < count, and counts those that
/// differ from the model in this kernel. One thread computes several operands.
template <class Function>
__global__ void run_kernel(std::uint32_t first, std::uint32_t stride, std::uint32_t count,
                           std::uint32_t* results, difference* found) {
  for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
       i += gridDim.x * blockDim.x) {
    const std::uint32_t x = first + i * stride;
    results[i] = Function::hardware(x);
    if (results[i] == Function::model(x)) continue;
    if (atomicAdd(&found->count, 1ull) == 0) found->operand = x;
  }
}

/// Device memory for the results of one slice.
class device_results {
 public:
  /// Runs the function on one slice; copies the results to `results`.
  template <class Function>
  difference run(std::uint32_t first, std::uint32_t stride, std::vector<std::uint32_t>& results) {
    using support::check_cuda;
    found_.fill(0);
    run_kernel<Function><<<2048, 256>>>(first, stride, static_cast<std::uint32_t>(results.size()),
                                        results_.as<std::uint32_t>(), found_.as<difference>());
    check_cuda(cudaGetLastError(), "run_kernel");
    difference found{};
    check_cuda(cudaMemcpy(&found, found_.data(), sizeof found, cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    check_cuda(cudaMemcpy(results.data(), results_.data(), results.size() * sizeof(results[0]),
                          cudaMemcpyDeviceToHost),
               "cudaMemcpy");
    return found;
  }

 private:
  support::device_bytes results_{slice * sizeof(std::uint32_t)}, found_{sizeof(difference)};
};

/// Compares every `step`-th of the results with the model on the host, on all cores.
template <class Function>
difference compare_on_host(std::uint32_t first, std::uint32_t stride,
                           const std::vector<std::uint32_t>& results, std::size_t step) {
  std::atomic<unsigned long long> count = 0;
  std::atomic<std::uint32_t> operand = 0;
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      for (std::size_t i = t * step; i < results.size(); i += threads * step) {
        const std::uint32_t x = first + static_cast<std::uint32_t>(i) * stride;
        if (results[i] == Function::model(x)) continue;
        if (count.fetch_add(1) == 0) operand = x;
      }
    });
  }
  workers.clear();  // joins
  return {count, operand};
}

inline void add(difference& total, const difference& part) {
  if (total.count == 0) total.operand = part.operand;
  total.count += part.count;
}

inline bool is_hopper() {
  using support::check_cuda;
  int device = 0, major = 0, minor = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "major");
  check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "minor");
  return major == 9 && minor == 0;
}

/// Compares all 2^32 operands in a kernel, and every `host_step`-th of them on the host. The
/// smallest effort has every 257th operand instead of all. Skips the test on GPUs whose compute
/// capability is not 9.0.
template <class Function>
void expect_the_models_bits(std::size_t host_step) {
  if (!is_hopper()) GTEST_SKIP() << "the model is that of compute capability 9.0";
  const std::uint32_t stride = support::by_effort(1u, 257u);
  const std::uint64_t total = (function_operands + stride - 1) / stride;
  device_results device;
  std::vector<std::uint32_t> results;
  difference in_kernel{}, on_host{};
  for (std::uint64_t done = 0; done < total; done += slice) {
    const auto first = static_cast<std::uint32_t>(done * stride);
    results.resize(std::min<std::uint64_t>(slice, total - done));
    add(in_kernel, device.template run<Function>(first, stride, results));
    add(on_host, compare_on_host<Function>(first, stride, results, host_step));
  }
  EXPECT_EQ(in_kernel.count, 0u) << Function::text << " in a kernel" << at(in_kernel);
  EXPECT_EQ(on_host.count, 0u) << Function::text << " on the host" << at(on_host);
  std::printf("%s: %llu operands, in a kernel %llu differ; every %lluth on the host, %llu differ\n",
              Function::text, static_cast<unsigned long long>(total), in_kernel.count,
              static_cast<unsigned long long>(host_step), on_host.count);
}

/// Names the tests of a typed suite by Function::text.
struct function_names {
  template <class Function>
  static std::string GetName(int) {
    std::string name = Function::text;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
  }
};

}  // namespace samebits
