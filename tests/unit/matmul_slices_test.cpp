// Products by slices of K, worked by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "samebits/matmul.hpp"
#include "samebits/types.hpp"

namespace samebits {
namespace {

/// Products along K are powers of two, so that the places of roundings show.
float slice_product(const std::vector<float>& a, const accumulator& sum,
                    const matmul_options& options = {}) {
  const std::vector<float> ones(a.size(), 1.0f);
  const auto depth = static_cast<std::int64_t>(a.size());
  float d = 0;
  matmul(view_of(a.data(), 1, depth), view_of(ones.data(), depth, 1), view_of(&d, 1, 1), sum,
         options);
  return d;
}

TEST(Matmul, AddsSlicesInTheStatedOrder) {
  auto sum = accumulator::ieee_fp32(fp32_order::ascending_fused);
  const std::vector<float> a = {0x1p24f, 1, 1, -0x1p24f, 1};
  EXPECT_EQ(slice_product(a, sum), 1);  // 2^24 + 1 is lost twice
  sum.slices = 3;                       // 2^24 + 1 | 1 - 2^24 | 1
  EXPECT_EQ(slice_product(a, sum), 2);
  sum.slice_tile = 3;  // 2^24 + 1 + 1 | -2^24 + 1
  EXPECT_EQ(slice_product(a, sum), 1);
  sum.slice_tile = 1;
  sum.slice_order = slice_order::cyclic;  // 2^24 - 2^24 | 1 + 1 | 1
  EXPECT_EQ(slice_product(a, sum), 3);
  sum.slices = 5;
  sum.slice_sum = slice_sum::halves;  // (2^24 - 2^24) + 1 and 1 + 1
  EXPECT_EQ(slice_product(a, sum), 3);
  sum = accumulator::ieee_fp32(fp32_order::ascending_fused);
  sum.promotion = 2;  // (2^24 + 1) + (1 - 2^24) + 1
  EXPECT_EQ(slice_product(a, sum), 2);
  sum.slices = 2;
  sum.slice_order = slice_order::cyclic;  // (2^24 + 1) + 1 | 1 - 2^24
  EXPECT_EQ(slice_product(a, sum), 1);
  sum = accumulator::ieee_fp32(fp32_order::tree);
  sum.promotion = 4;  // +0 + -0
  EXPECT_FALSE(std::signbit(slice_product({-0.0f}, sum)));
  const float c = 0x1p24f;
  const matmul_options after = {.c = view_of(&c, 1, 1), .c_enters = addend::after_first_slice};
  sum = accumulator::ieee_fp32(fp32_order::ascending);
  EXPECT_EQ(slice_product({1, 1, 1}, sum, after), 0x1p24f + 4);  // as last: 3 + 2^24
  sum.slices = 3;
  EXPECT_EQ(slice_product({1, 1, 1}, sum, after), 0x1p24f);
}

TEST(Matmul, RoundsFp32ToTf32) {
  accumulator sum = accumulator::tensor_core(tensor_unit::hopper_wgmma, 0);
  sum.fp32_as_tf32 = true;
  // 1 + 2^-11 is halfway: to even is down. 1 + 3 * 2^-11 is up to 1 + 2^-9.
  EXPECT_EQ(slice_product({1 + 0x1p-11f}, sum), 1);
  EXPECT_EQ(slice_product({1 + 0x1.8p-10f}, sum), 1 + 0x1p-9f);
  EXPECT_EQ(evidence_of(sum, format_id::fp32, format_id::fp32), evidence::hardware);
}

}  // namespace
}  // namespace samebits
