// numerics/hardware/torch_operators/: sums of the operators' results and gradients over 65,536
// operands of each format, all codes of fp16 and bf16 among them.
//
// The sums come from a program that has PyTorch's formulas in the processor's binary32 arithmetic
// and shares no code with the library. test_functions_gpu.py compares the library's own results with
// PyTorch's on a GPU.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "numerics/hardware/evaluate.hpp"

namespace samebits::numerics {
namespace {

constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16};

constexpr std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

constexpr function_plan torch_plan(function f, format_id format, double parameter = 0) {
  return plan_of(function_rule::torch_2_11, f, format, bits(parameter), bits(parameter - 1));
}

struct operator_sums {
  function of;
  double parameter;
  std::uint64_t forward, gradient;  ///< of fp32, fp16 and bf16, together
};

constexpr operator_sums expected[] = {
    {function::exp, 0, 0xAE2DA8FCE28792EF, 0x17DD0F91512C6F1D},
    {function::exp2, 0, 0xB2BE8E35D1D7AEB9, 0xD510452D4198A2ED},
    {function::expm1, 0, 0xE87F29D389EE5122, 0xC6E84FEC2859AF35},
    {function::log, 0, 0x2E722D3C171DCC10, 0xC854B7B6B86FE6D0},
    {function::log2, 0, 0x4B2E3E5B0F158C73, 0x99AD529DC77EB402},
    {function::log1p, 0, 0x3CF750A784260A99, 0x7D4349475DFCAF39},
    {function::tanh, 0, 0x7A3DAC021C6E431E, 0x4570AB5D8E6DFB85},
    {function::erf, 0, 0xFE7AE84284BD53B3, 0x7FF6A91639685A55},
    {function::pow, 0, 0xD8952B8000000000, 0x0000000000000000},
    {function::pow, 1, 0xC021A90317A6B82C, 0x85F9B9FE6C9FC6E9},
    {function::pow, 0.5, 0xD8B23FE3ABD6D64A, 0xB97817E3C7290BBC},
    {function::pow, -0.5, 0x4245A1B8887A9176, 0xFB3210B720AFF615},
    {function::pow, -1, 0x3E44E819D51A2995, 0x76AE946967C9F3C4},
    {function::pow, 2, 0x284EED65F80B42D4, 0x31B8382CDAD9B903},
    {function::pow, 3, 0x9DD18F8543BDA829, 0x2B4C2F1362E50B70},
    {function::pow, -2, 0x26568AC684B9AB8B, 0x3605086C02EC5FD1},
    {function::pow, 0.3, 0x1C36A48BFF203019, 0x7CA1E874C7D0895A},
    {function::pow, 2.001, 0xE76F76E14FA9798F, 0x5D3CCA858868968F},
    {function::pow, -3, 0x24EF23674060B225, 0xF61B1F0999C89834},
    {function::rsqrt, 0, 0x4245A1B8887A9176, 0x59E919E391310F70},
    {function::reciprocal, 0, 0x3E44E819D51A2995, 0xC42B1930F3346286},
    {function::sigmoid, 0, 0x91D87B9612415D74, 0x4F248002F0C1150A},
    {function::silu, 0, 0xFC500037ABC8AF27, 0x77C939EAB11C4B04},
    {function::gelu, 0, 0x6504F5AD8705ED03, 0x2C7D74179675667F},
    {function::gelu_tanh, 0, 0x174C4EE6A12C38F0, 0xC3932F7964928D45},
    {function::softplus, 0, 0x9F2EF396787AD8B5, 0x7E8DA3220D7F6184},
    {function::elu, 1, 0x0EED974DF56CDD61, 0xB72B4B95C4DED9F4},
    {function::elu, 0.7, 0xAC0A1B6A89D7962A, 0xBF9CE1449B3B4BF4},
    {function::relu, 0, 0xD716F6317F4C2F2C, 0xA9ADC13820F298EC},
    {function::leaky_relu, 0.01, 0xFB10EA919DEB2915, 0x3E6C6544DED2FEFD},
    {function::mish, 0, 0x88F4A7101C8B4F56, 0x30C811A1818537D0},
    {function::hardswish, 0, 0xF44087DD95BD290F, 0xA13835F17699AC99},
};

/// Operand i of 65,536: each code of 16 bits, or every 65,537th of 32 bits.
constexpr std::uint32_t operand_of(format_id format, std::uint32_t i) {
  return format == format_id::fp32 ? i * 65537 : i;
}

std::uint64_t forward_sum(const function_plan& plan) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto y = evaluate_code<std::uint32_t>(plan, operand_of(plan.format, i));
    sum += std::uint64_t{y} * (2 * std::uint64_t{i} + 1);
  }
  return sum;
}

/// The gradients of the results are pseudo-random: every second one a number near 1.
std::uint64_t gradient_sum(const function_plan& plan) {
  std::uint64_t sum = 0, state = 7;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    auto grad = static_cast<std::uint32_t>(state >> 32);
    if (i % 2 == 0) grad = 0x3F000000 + grad % 0x01000000;
    if (plan.format != format_id::fp32) grad >>= 16;
    const std::uint32_t x = operand_of(plan.format, i);
    const auto y = evaluate_gradient_code<std::uint32_t>(plan, grad, x);
    sum += std::uint64_t{y} * (2 * std::uint64_t{i} + 1);
  }
  return sum;
}

TEST(TorchOperators, HaveTheSumsOfTheirFormulas) {
  for (const operator_sums& e : expected) {
    std::uint64_t forward = 0, gradient = 0;
    for (const format_id format : formats) {
      const function_plan plan = torch_plan(e.of, format, e.parameter);
      forward = forward * 0x9E3779B97F4A7C15u + forward_sum(plan);
      gradient = gradient * 0x9E3779B97F4A7C15u + gradient_sum(plan);
    }
    EXPECT_EQ(forward, e.forward) << name(e.of) << " " << e.parameter;
    EXPECT_EQ(gradient, e.gradient) << "gradient of " << name(e.of) << " " << e.parameter;
  }
}

constexpr std::uint32_t torch(function f, std::uint32_t x, double parameter = 0) {
  return evaluate_code<std::uint32_t>(torch_plan(f, format_id::fp32, parameter), x);
}
constexpr std::uint32_t gradient_at(function f, std::uint32_t x, double parameter = 0) {
  const function_plan plan = torch_plan(f, format_id::fp32, parameter);
  return evaluate_gradient_code<std::uint32_t>(plan, 0x40000000, x);  // of 2
}

// Zeros, infinities and NaN.
static_assert(torch(function::relu, 0x80000000) == 0 &&
              torch(function::relu, 0xFFC00001) == 0x7FFFFFFF);
static_assert(torch(function::silu, 0xFF800000) == 0x7FFFFFFF);
static_assert(torch(function::hardswish, 0x7FC00000) == 0x7FFFFFFF);
static_assert(torch(function::pow, 0x7FC00000, 0) == 0x3F800000);
static_assert(torch(function::pow, 0x7FC00000, -0.0) == 0x3F800000);
// The borders of hardswish's gradient, -3 and 3, and NaN: 0, grad, grad.
static_assert(gradient_at(function::hardswish, 0xC0400000) == 0);
static_assert(gradient_at(function::hardswish, 0x40400000) == 0x40000000);
static_assert(gradient_at(function::hardswish, 0x7FC00000) == 0x40000000);
static_assert(gradient_at(function::pow, 0x7FC00000, 0) == 0);

TEST(TorchOperators, BelongToTheirRules) {
  int of_cuda = 0, of_torch = 0;
  for (int i = 0; i < enum_count<function>; ++i) {
    const function f = static_cast<function>(i);
    EXPECT_FALSE(has_function(function_rule::exact, f, format_id::fp32)) << name(f);
    EXPECT_FALSE(has_function(function_rule::cuda_13_0, f, format_id::fp16)) << name(f);
    EXPECT_FALSE(has_function(function_rule::torch_2_11, f, format_id::e4m3)) << name(f);
    of_cuda += has_function(function_rule::cuda_13_0, f, format_id::fp32) ? 1 : 0;
    of_torch += has_function(function_rule::torch_2_11, f, format_id::bf16) ? 1 : 0;
  }
  EXPECT_EQ(of_cuda, 16);
  EXPECT_EQ(of_torch, 21);
  EXPECT_TRUE(has_function(function_rule::cuda_13_0, function::rsqrt, format_id::fp32));
  EXPECT_FALSE(has_function(function_rule::cuda_13_0, function::reciprocal, format_id::fp32));
}

TEST(TorchOperators, KeepTheSmallestPositiveOperand) {
  EXPECT_EQ(torch_2_11::leaky_relu(std::uint32_t{1}, 0x3C23D70A), 1u);
}

}  // namespace
}  // namespace samebits::numerics
