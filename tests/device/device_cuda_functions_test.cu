// CUDA's functions as this toolkit compiles them against their model: their results in a kernel
// equal those of numerics/hardware/cuda_functions/ on the host and in the kernel.
//
// The model is that of CUDA 13.0. Another toolkit may compile other steps; a difference then says
// that the function needs a rule of its own.
#include <gtest/gtest.h>

#include <cstdint>

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
#include "tests/device/function_comparison.cuh"

namespace samebits {
namespace {

namespace cuda_13_0 = numerics::cuda_13_0;

// One struct for each function, as function_comparison.cuh describes.
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

template <class Function>
class CudaFunctions : public testing::Test {};

using functions =
    testing::Types<exp_of_cuda, exp2_of_cuda, expm1_of_cuda, log_of_cuda, log2_of_cuda,
                   log1p_of_cuda, tanh_of_cuda, erf_of_cuda, rsqrt_of_cuda, log10_of_cuda,
                   erfc_of_cuda, sin_of_cuda, cos_of_cuda, fast_exp_of_cuda, fast_log_of_cuda,
                   powf_of_cuda, fdividef_of_cuda>;
TYPED_TEST_SUITE(CudaFunctions, functions, function_names);

// A function of two operands takes its second operand from the first one.
//
// On the host a model's steps are integer code, which takes 0.1 us per operand.
TYPED_TEST(CudaFunctions, ReturnTheModelsBits) { expect_the_models_bits<TypeParam>(61); }

}  // namespace
}  // namespace samebits
