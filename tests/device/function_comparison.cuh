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
#include <cstdint>
#include <cstdio>
#include <string>

#include "samebits/core/config.hpp"
#include "tests/device/both_sides.cuh"
#include "tests/support/effort.hpp"

namespace samebits {

constexpr std::uint64_t function_operands = std::uint64_t{1} << 32;
constexpr std::uint64_t slice = 1u << 26;  // operands at a time: 256 MiB of results

/// A function at the operands first, first + stride, ...
template <class Function>
struct function_results {
  std::uint64_t first, stride;

  SAMEBITS_HD std::uint32_t operand(std::uint64_t i) const {
    return static_cast<std::uint32_t>(first + i * stride);
  }
  SAMEBITS_HD std::uint32_t at(std::uint64_t i) const { return Function::model(operand(i)); }
  __device__ std::uint32_t on_gpu(std::uint64_t i) const { return Function::hardware(operand(i)); }
};

/// Notes the operands whose results differ from the model in this kernel.
template <class Function>
__global__ void compare_in_kernel(function_results<Function> of, std::int64_t count,
                                  support::difference* seen) {
  support::for_elements(count, [&](std::int64_t i) {
    const auto at = static_cast<std::uint64_t>(i);
    if (of.on_gpu(at) != of.at(at)) support::note(seen, of.operand(at));
  });
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
void expect_the_models_bits(std::uint64_t host_step) {
  if (!is_hopper()) GTEST_SKIP() << "the model is that of compute capability 9.0";
  const std::uint64_t stride = support::by_effort<std::uint64_t>(1, 257);
  const std::uint64_t total = (function_operands + stride - 1) / stride;
  std::uint64_t on_host = 0;
  support::difference in_kernel = {0, ~0ull};
  for (std::uint64_t done = 0; done < total; done += slice) {
    const std::uint64_t count = std::min(slice, total - done), first = done * stride;
    const support::difference found = support::seen_by([&](support::difference* seen) {
      compare_in_kernel<<<2048, 256>>>(function_results<Function>{first, stride},
                                       static_cast<std::int64_t>(count), seen);
    });
    in_kernel.count += found.count;
    in_kernel.first = std::min(in_kernel.first, found.first);
    on_host += support::differing(function_results<Function>{first, stride * host_step},
                                  (count + host_step - 1) / host_step);
  }
  EXPECT_EQ(in_kernel.count, 0u) << Function::text << " in a kernel, the first at operand 0x"
                                 << std::hex << in_kernel.first;
  EXPECT_EQ(on_host, 0u) << Function::text << " on the host";
  std::printf("%s: %llu operands, in a kernel %llu differ; every %lluth on the host, %llu differ\n",
              Function::text, static_cast<unsigned long long>(total), in_kernel.count,
              static_cast<unsigned long long>(host_step), static_cast<unsigned long long>(on_host));
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
