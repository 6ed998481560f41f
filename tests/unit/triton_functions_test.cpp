// Functions by triton_3_6 and torch_compile_2_11: the PTX of Triton's kernels, written with the
// processor's floats, against the definition.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/tanh.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "numerics/hardware/triton_functions/triton_softmax.hpp"

namespace samebits::numerics {
namespace {

float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits(float x) {
  return std::isnan(x) ? binary32::nan : std::bit_cast<std::uint32_t>(x);
}
float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }
/// fma.rn.ftz.f32
float fma_ftz(float a, float b, float c) {
  return flushed(std::fma(flushed(a), flushed(b), flushed(c)));
}
float ex2(float x) { return number(hopper::ex2_approx(bits(x))); }
float ex2_ftz(float x) { return number(hopper::ex2_approx_ftz(bits(x))); }
float rcp(float x) { return number(hopper::rcp_approx_ftz(bits(x))); }

/// div.full.f32
float divide(float a, float b) {
  if (std::fabs(b) > 0x1p126f) return (a * 0.25f) * rcp(b * 0.25f);
  if (std::fabs(b) < 0x1p-126f) return (a * 0x1p24f) * rcp(b * 0x1p24f);
  return a * rcp(b);
}

float tl_erf(float x) {
  const float outer[] = {number(0x3789CA3C), number(0xB9F560B9), number(0x3BAC840B),
                         number(0xBD0C8162), number(0x3E1CF906), number(0x3F6A937E),
                         number(0x3F20D842)};
  const float inner[] = {number(0x38B1E96A), number(0xBA574D20), number(0x3BAAD5EA),
                         number(0xBCDC1BE7), number(0x3DE718AF), number(0xBEC093AC),
                         number(0x3E0375D3)};
  const float magnitude = std::fabs(flushed(x));
  const bool far = magnitude >= number(0x3F8060FE);
  const float place = far ? magnitude : x * x;
  const float* const c = far ? outer : inner;
  float sum = c[0];
  for (int i = 1; i < 7; ++i) sum = fma_ftz(sum, place, c[i]);
  const float factor = far ? -place : x;
  const float product = fma_ftz(sum, factor, factor);
  return far ? std::copysign(1 - ex2_ftz(product), x) : product;
}

float compiled_silu(float x) {
  const float y = 0 - x;
  const float half = fma_ftz(y, number(0x3BBB989D), 0.5f);
  const float place = std::isnan(half) || half < 0 ? 0 : half > 1 ? 1 : half;
  // fma.rm: 12582913 + 252 place lies below 2^24, so the sum of doubles is exact.
  const float shifted = static_cast<float>(std::floor(12582913.0 + 252.0 * double{place}));
  const float n = shifted - number(0x4B40007F);
  const float upper = fma_ftz(y, number(0x3FB8AA3B), -n);
  const float exponent = fma_ftz(y, number(0x32A57060), upper);
  return divide(x, std::fma(ex2_ftz(exponent), number(bits(shifted) << 23), 1.0f));
}
float compiled_gelu(float x) { return (x * 0.5f) * (tl_erf(x * number(0x3F3504F3)) + 1); }
float compiled_gelu_tanh(float x) {
  const float inner = std::fma((x * x) * x, number(0x3D372713), x) * number(0x3F4C422A);
  return (x * 0.5f) * (number(cuda_13_0::tanh(bits(inner))) + 1);
}

float oracle(function_rule rule, function f, float x) {
  const bool compiled = rule == function_rule::torch_compile_2_11;
  switch (f) {
    case function::exp: return ex2(x * number(0x3FB8AA3B));
    case function::exp2: return ex2_ftz(x);
    case function::log: return number(cuda_13_0::log(bits(x)));
    case function::log2: return number(cuda_13_0::log2(bits(x)));
    case function::erf: return tl_erf(x);
    case function::rsqrt: return number(hopper::rsqrt_approx_ftz(bits(x)));
    case function::sigmoid: return divide(1, ex2((0 - x) * number(0x3FB8AA3B)) + 1);
    case function::silu: return compiled ? compiled_silu(x) : 0;
    case function::gelu: return compiled ? compiled_gelu(x) : 0;
    case function::gelu_tanh: return compiled ? compiled_gelu_tanh(x) : 0;
    default: return 0;
  }
}

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

TEST(TritonFunctions, HaveTheStepsOfTritonsKernels) {
  int compared = 0;
  for (const function_rule rule : {function_rule::triton_3_6, function_rule::torch_compile_2_11}) {
    for (int i = 0; i < enum_count<function>; ++i) {
      const function f = static_cast<function>(i);
      if (!has_function(rule, f, format_id::fp32)) continue;
      ++compared;
      EXPECT_TRUE(has_function(rule, f, format_id::bf16));
      EXPECT_FALSE(has_function(rule, f, format_id::e4m3));
      const function_plan plan = plan_of(rule, f, format_id::fp32, 0, 0);
      for (const std::uint32_t x : operands()) {
        const std::uint32_t got = evaluate_code(plan, x);
        ASSERT_EQ(got, bits(oracle(rule, f, number(x))))
            << name(rule) << " " << name(f) << " of " << std::hex << x;
      }
    }
  }
  EXPECT_EQ(compared, 7 + 4);
}

/// A change of the smallest coefficient's last bit shows in few results.
TEST(TritonFunctions, ErfHasItsCoefficients) {
  for (std::uint32_t x = 0x3F8060FE; x < 0x40800000; x += 61) {
    ASSERT_EQ(triton_3_6::erf(x), bits(tl_erf(number(x)))) << std::hex << x;
  }
}

TEST(TritonFunctions, FullDivideScalesItsOperands) {
  for (const float b : {0x1p126f, 0x1.000002p126f, 0x1.8p126f, 0x1p127f, 0x1p-126f, 0x1p-127f,
                        0x1.23456p-127f, 0x1.ffff8p-130f, 0x1p-149f, 3.0f}) {
    for (const float a : {1.0f, 0x1.234568p100f, 0x1.fffffep127f, 0x1.5p-130f, -7.0f}) {
      EXPECT_EQ(triton_3_6::full_divide(bits(a), bits(b)), bits(divide(a, b))) << a << " / " << b;
      EXPECT_EQ(triton_3_6::full_divide(bits(a), bits(-b)), bits(divide(a, -b)));
    }
  }
  EXPECT_EQ(bits(divide(1.0f, 0x1p-127f)), bits(0x1p127f));
  for (std::uint32_t i = 1; i < 2000; ++i) {  // subnormal divisors, quotients near 1
    const float b = number(i * 4099 % 0x00800000), a = number(i * 7919 % 0x01000000);
    ASSERT_EQ(triton_3_6::full_divide(bits(a), bits(b)), bits(divide(a, b))) << a << " / " << b;
  }
}

/// tl.softmax as its kernel computes it: every thread of the block has its vectors in registers.
std::vector<float> tl_softmax(const std::vector<float>& x, std::size_t block, std::size_t warps,
                              std::size_t vector) {
  float max = -INFINITY;
  for (const float e : x) max = std::fmax(max, e);
  std::vector<float> terms(block, 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i) terms[i] = ex2((x[i] - max) * number(0x3FB8AA3B));
  while (vector > 1 && vector * 32 * warps > block) vector /= 2;
  std::vector<float> of_warps;
  for (std::size_t w = 0; w < warps && w * 32 * vector < block; ++w) {
    std::vector<float> lanes;
    for (std::size_t l = 0; l < 32 && (w * 32 + l) * vector < block; ++l) {
      float sum = 0;
      for (std::size_t i = (w * 32 + l) * vector; i < block; i += warps * 32 * vector) {
        for (std::size_t j = 0; j < vector; ++j) sum += terms[i + j];
      }
      lanes.push_back(sum);
    }
    for (std::size_t step = lanes.size() / 2; step > 0; step /= 2) {  // shfl.sync.bfly
      const std::vector<float> before = lanes;
      for (std::size_t l = 0; l < lanes.size(); ++l) lanes[l] = before[l] + before[l ^ step];
    }
    of_warps.push_back(lanes[0]);
  }
  for (std::size_t step = of_warps.size() / 2; step > 0; step /= 2) {
    const std::vector<float> before = of_warps;
    for (std::size_t w = 0; w < of_warps.size(); ++w) of_warps[w] = before[w] + before[w ^ step];
  }
  std::vector<float> y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(divide(terms[i], of_warps[0]));
  return y;
}

TEST(TritonFunctions, SoftmaxAddsInTheOrderOfTritonsKernels) {
  std::uint64_t seed = 5;
  for (const std::int64_t n : {1, 2, 3, 31, 32, 33, 64, 100, 128, 255, 512, 1000, 4096, 5000}) {
    std::vector<float> x;
    std::vector<std::uint32_t> codes;
    for (std::int64_t i = 0; i < n; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      x.push_back(static_cast<float>(seed >> 40) * 0x1p-21f);
      codes.push_back(bits(x.back()));
    }
    const std::int64_t block = triton_3_6::block_of(n);
    EXPECT_TRUE(block >= n && block < 2 * n);
    for (const int warps : {1, 2, 4, 8, 32}) {
      for (const int vector : {1, 2, 4, 8}) {
        const auto expected =
            tl_softmax(x, static_cast<std::size_t>(block), static_cast<std::size_t>(warps),
                       static_cast<std::size_t>(vector));
        std::vector<std::uint32_t> got = codes;
        got.push_back(0x60123456);  // behind the row; large, so that it would change the sum
        triton_3_6::softmax_row(triton_3_6::sum_order(n, warps, vector), got.data(), n);
        ASSERT_EQ(got.back(), 0x60123456u);
        got.pop_back();
        for (std::size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i], bits(expected[i])) << n << " " << warps << " " << vector << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace samebits::numerics
