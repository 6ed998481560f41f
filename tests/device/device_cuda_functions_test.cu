// CUDA's functions as this toolkit compiles them against their model: their results in a kernel
// equal those of numerics/hardware/cuda_functions/ on the host and in the kernel.
//
// The model is that of CUDA 13.0. Another toolkit may compile other steps; a difference then says
// that the function needs a rule of its own.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "numerics/hardware/cuda_functions/erf.hpp"
#include "numerics/hardware/cuda_functions/erfc.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/expm1.hpp"
#include "numerics/hardware/cuda_functions/fast_divide.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/log1p.hpp"
#include "numerics/hardware/cuda_functions/pow.hpp"
#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/cuda_functions/sin.hpp"
#include "numerics/hardware/cuda_functions/tanh.hpp"
#include "samebits/core/config.hpp"
#include "tests/device/both_sides.cuh"
#include "tests/support/effort.hpp"

namespace samebits {
namespace {

namespace cuda_13_0 = numerics::cuda_13_0;

// A struct for each function, of binary32 bits: the GPU's result, and the expected one.
#define SAMEBITS_TEST_FUNCTION(rule_function, cuda_function)       \
  struct rule_function##_of_cuda {                                 \
    static constexpr const char* text = #cuda_function;            \
    SAMEBITS_HD static std::uint32_t model(std::uint32_t x) {      \
      return cuda_13_0::rule_function(x);                          \
    }                                                              \
    __device__ static std::uint32_t hardware(std::uint32_t x) {    \
      return __float_as_uint(::cuda_function(__uint_as_float(x))); \
    }                                                              \
  }
SAMEBITS_TEST_FUNCTION(exp, expf);
SAMEBITS_TEST_FUNCTION(exp2, exp2f);
SAMEBITS_TEST_FUNCTION(expm1, expm1f);
SAMEBITS_TEST_FUNCTION(log, logf);
SAMEBITS_TEST_FUNCTION(log2, log2f);
SAMEBITS_TEST_FUNCTION(log1p, log1pf);
SAMEBITS_TEST_FUNCTION(tanh, tanhf);
SAMEBITS_TEST_FUNCTION(erf, erff);
SAMEBITS_TEST_FUNCTION(rsqrt, rsqrtf);
SAMEBITS_TEST_FUNCTION(log10, log10f);
SAMEBITS_TEST_FUNCTION(erfc, erfcf);
SAMEBITS_TEST_FUNCTION(sin, sinf);
SAMEBITS_TEST_FUNCTION(cos, cosf);
SAMEBITS_TEST_FUNCTION(fast_exp, __expf);
SAMEBITS_TEST_FUNCTION(fast_log, __logf);
#undef SAMEBITS_TEST_FUNCTION

/// A second operand for each first one: any code for odd x, else a number near 1 in magnitude.
SAMEBITS_HD inline std::uint32_t second_operand(std::uint32_t x) {
  const std::uint32_t mixed = (x ^ (x >> 15)) * 0x9E3779B1u;
  const std::uint32_t any = mixed ^ (mixed >> 13);
  return (x & 1) != 0 ? any : (any & 0x80000000u) | (0x3C000000u + any % 0x06000000u);
}

struct powf_of_cuda {
  static constexpr const char* text = "powf";
  SAMEBITS_HD static std::uint32_t model(std::uint32_t x) {
    return cuda_13_0::pow(x, second_operand(x));
  }
  __device__ static std::uint32_t hardware(std::uint32_t x) {
    return __float_as_uint(::powf(__uint_as_float(x), __uint_as_float(second_operand(x))));
  }
};
struct fdividef_of_cuda {
  static constexpr const char* text = "__fdividef";
  SAMEBITS_HD static std::uint32_t model(std::uint32_t x) {
    return cuda_13_0::fast_divide(x, second_operand(x));
  }
  __device__ static std::uint32_t hardware(std::uint32_t x) {
    return __float_as_uint(::__fdividef(__uint_as_float(x), __uint_as_float(second_operand(x))));
  }
};

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

template <class Function>
class CudaFunctions : public testing::Test {};

/// Names the tests by Function::text.
struct function_names {
  template <class Function>
  static std::string GetName(int) {
    return Function::text;
  }
};

using functions =
    testing::Types<exp_of_cuda, exp2_of_cuda, expm1_of_cuda, log_of_cuda, log2_of_cuda,
                   log1p_of_cuda, tanh_of_cuda, erf_of_cuda, rsqrt_of_cuda, log10_of_cuda,
                   erfc_of_cuda, sin_of_cuda, cos_of_cuda, fast_exp_of_cuda, fast_log_of_cuda,
                   powf_of_cuda, fdividef_of_cuda>;
TYPED_TEST_SUITE(CudaFunctions, functions, function_names);

/// All 2^32 operands in a kernel, or every 257th under the smallest effort. Every 61st of them on the
/// host, where the integer steps of a model take 0.1 us.
TYPED_TEST(CudaFunctions, ReturnTheModelsBits) {
  using results = function_results<TypeParam>;
  constexpr std::uint64_t host_step = 61, slice = 1u << 26;  // operands at a time
  cudaDeviceProp gpu;
  support::check_cuda(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  if (gpu.major != 9 || gpu.minor != 0)
    GTEST_SKIP() << "the model is that of compute capability 9.0";
  const std::uint64_t stride = support::by_effort<std::uint64_t>(1, 257);
  const std::uint64_t total = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  std::uint64_t in_kernel = 0, on_host = 0;
  for (std::uint64_t done = 0; done < total; done += slice) {
    const std::uint64_t count = std::min(slice, total - done), first = done * stride;
    const support::difference found = support::seen_by([&](support::difference* seen) {
      compare_in_kernel<<<2048, 256>>>(results{first, stride}, static_cast<std::int64_t>(count),
                                       seen);
    });
    EXPECT_EQ(found.count, 0u) << "in a kernel, the first at operand 0x" << std::hex << found.first;
    in_kernel += found.count;
    on_host +=
        support::differing(results{first, stride * host_step}, (count + host_step - 1) / host_step);
  }
  EXPECT_EQ(on_host, 0u) << "on the host";
  std::printf("%s: %llu operands, in a kernel %llu differ; every %lluth on the host, %llu differ\n",
              TypeParam::text, static_cast<unsigned long long>(total),
              static_cast<unsigned long long>(in_kernel),
              static_cast<unsigned long long>(host_step), static_cast<unsigned long long>(on_host));
}

}  // namespace
}  // namespace samebits
