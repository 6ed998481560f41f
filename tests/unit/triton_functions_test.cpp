// Functions by triton_3_6 and torch_compile_2_11. The sums are those of a program that has the PTX of
// Triton's kernels in the processor's floats and shares no code with the library. On a GPU,
// test_triton_functions_gpu.py compares with Triton and PyTorch.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "numerics/hardware/evaluate.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"
#include "support/function_sum.hpp"

namespace samebits::numerics {
namespace {

using support::word_sum;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

std::vector<std::uint32_t> operands() {
  std::vector<std::uint32_t> all = {0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                    0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
                                    0x7E800000, 0x7E800001, 0xFE800001, 0x3F8060FD, 0x3F8060FE,
                                    0xBF8060FE, 0x42AEAC50, 0xC2AEAC50, 0x42B17218, 0x3FB504F3};
  for (std::uint64_t i = 0; i < 1u << 15; ++i) {
    all.push_back(static_cast<std::uint32_t>(i * 131071));              // of any exponent
    all.push_back(0x3C000000u + static_cast<std::uint32_t>(i * 7919));  // 2^-7 to 2^9
    all.push_back(0xBC000000u + static_cast<std::uint32_t>(i * 7919));
  }
  return all;
}

constexpr auto triton = function_rule::triton_3_6;
constexpr auto compiled = function_rule::torch_compile_2_11;

struct function_sum {
  function_rule rule;
  function of;
  std::uint64_t sum;
};
constexpr function_sum expected[] = {
    {triton, function::exp, 0xFEE013813A04F4B9},
    {triton, function::exp2, 0x3223D0AF32D454DF},
    {triton, function::log, 0x6E1C8FE688984396},
    {triton, function::log2, 0xAFFE45EBE47AA6C1},
    {triton, function::erf, 0x3D33ECB6EC0C5C88},
    {triton, function::rsqrt, 0x2003718819F1FDEF},
    {triton, function::sigmoid, 0x5D3871F1E1AFFE6D},
    {compiled, function::sigmoid, 0x5D3871F1E1AFFE6D},
    {compiled, function::silu, 0x3DB862EAE17BDEC6},
    {compiled, function::gelu, 0x8B7D1254165FE1AE},
    {compiled, function::gelu_tanh, 0x7F36D9D967AA695D},
};

TEST(TritonFunctions, HaveTheSumsOfTritonsKernels) {
  std::size_t functions = 0;
  for (int i = 0; i < enum_count<function>; ++i) {
    for (const function_rule rule : {triton, compiled}) {
      functions += has_function(rule, static_cast<function>(i), format_id::fp32) ? 1u : 0u;
    }
  }
  EXPECT_EQ(functions, std::size(expected));
  for (const auto& [rule, of, expected_sum] : expected) {
    EXPECT_TRUE(has_function(rule, of, format_id::bf16));
    EXPECT_FALSE(has_function(rule, of, format_id::e4m3));
    const function_plan plan = plan_of(rule, of, format_id::fp32, 0, 0);
    word_sum sum;
    for (const std::uint32_t x : operands()) sum.add(evaluate_code(plan, x));
    EXPECT_EQ(sum.value(), expected_sum) << name(rule) << " " << name(of);
  }
}

/// A change of the smallest coefficient's last bit shows in few results.
TEST(TritonFunctions, ErfHasItsCoefficients) {
  word_sum sum;
  for (std::uint32_t x = 0x3F8060FE; x < 0x40800000; x += 61) sum.add(triton_3_6::erf(x));
  EXPECT_EQ(sum.value(), 0x6BE9676FA3D06CE9u);
}

TEST(TritonFunctions, FullDivideScalesItsOperands) {
  word_sum sum;
  for (const float b : {0x1p126f, 0x1.000002p126f, 0x1.8p126f, 0x1p127f, 0x1p-126f, 0x1p-127f,
                        0x1.23456p-127f, 0x1.ffff8p-130f, 0x1p-149f, 3.0f}) {
    for (const float a : {1.0f, 0x1.234568p100f, 0x1.fffffep127f, 0x1.5p-130f, -7.0f}) {
      sum.add(triton_3_6::full_divide(bits(a), bits(b)));
      sum.add(triton_3_6::full_divide(bits(a), bits(-b)));
    }
  }
  for (std::uint32_t i = 1; i < 2000; ++i) {  // subnormal divisors, quotients near 1
    sum.add(triton_3_6::full_divide(i * 7919 % 0x01000000, i * 4099 % 0x00800000));
  }
  EXPECT_EQ(sum.value(), 0xF32B434AD5BA6A9Au);
}

TEST(TritonFunctions, SoftmaxAddsInTheOrderOfTritonsKernels) {
  std::uint64_t seed = 5;
  word_sum sum;
  for (const std::int64_t n : {1, 2, 3, 31, 32, 33, 64, 100, 128, 255, 512, 1000, 4096, 5000}) {
    std::vector<std::uint32_t> row;
    for (std::int64_t i = 0; i < n; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      row.push_back(bits(static_cast<float>(seed >> 40) * 0x1p-21f));
    }
    row.push_back(0x60123456);  // behind the row; large, so that it would change the sum
    const std::int64_t block = triton_3_6::block_of(n);
    EXPECT_TRUE(block >= n && block < 2 * n);
    for (const int warps : {1, 2, 4, 8, 32}) {
      for (const int vector : {1, 2, 4, 8}) {
        std::vector<std::uint32_t> got = row;
        triton_3_6::softmax_row(triton_3_6::sum_order(n, warps, vector), got.data(), n);
        sum.add(got);
      }
    }
  }
  EXPECT_EQ(sum.value(), 0xA6F3553FFF37A744u);
}

}  // namespace
}  // namespace samebits::numerics
