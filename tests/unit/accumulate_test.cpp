// numerics/hardware/accumulate.hpp: at compile time, rows of units, missing products. exhaustive.accumulate
// compares every unit, pairing, result and width with the oracle.
#include "numerics/hardware/accumulate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "samebits/core/tensor_unit.hpp"

namespace samebits::numerics {
namespace {

using enum format_id;
using enum tensor_unit;

constexpr std::uint32_t one = 0x3F800000;

// 1 - 2^-25: Hopper keeps the small term with 25 bits, Ampere loses it with 24. Codes of fp16.
constexpr std::uint32_t one_and_a_small_term(tensor_unit unit) {
  const tensor_arithmetic row = *find_tensor_row(unit, *tensor_operands_of(fp16, fp16));
  const accumulate_rule r = accumulate_rule_of(row, fp16, fp16, fp32, 2);
  const std::array a = {tensor_operand_of(r.a, r.subnormal_exponent_a, 0x3C00),
                        tensor_operand_of(r.a, r.subnormal_exponent_a, 0x8C00)};
  const std::array b = {tensor_operand_of(r.b, r.subnormal_exponent_b, 0x3C00),
                        tensor_operand_of(r.b, r.subnormal_exponent_b, 0x0800)};
  return accumulate(r, a.data(), b.data(), 2, 0);
}
static_assert(one_and_a_small_term(hopper_wgmma) == 0x3F7FFFFF);
static_assert(one_and_a_small_term(ampere_mma) == one);

// Every row cuts terms toward zero. A fit to the results of a GPU also tries other roundings.
static_assert(cut_term(0b101'1, -1, false, rounding::toward_zero) == 5);
static_assert(cut_term(0b101'1, -1, false, rounding::nearest_even) == 6);
static_assert(cut_term(0b100'1, -1, true, rounding::nearest_even) == -4);
static_assert(cut_term(0b101'1, -1, false, rounding::downward) == 5);
static_assert(cut_term(0b101'1, -1, true, rounding::downward) == -6);
static_assert(cut_term(1, -200, true, rounding::toward_zero) == 0);
static_assert(cut_term(1, -200, true, rounding::nearest_even) == 0);
static_assert(cut_term(1, -200, true, rounding::downward) == -1);

TEST(TensorUnits, HaveUniqueRowsAndNames) {
  for (int i = 0; i < tensor_row_count; ++i) {
    const tensor_arithmetic row = tensor_row(i);
    const auto found = find_tensor_row(row.unit, row.operands);
    ASSERT_TRUE(found.has_value());
    EXPECT_STREQ(found->source, row.source);
    EXPECT_EQ(found->fp16, row.fp16);
    EXPECT_EQ(find_enumerator<tensor_unit>(name(row.unit)), row.unit);
    EXPECT_NE(row.fp32, evidence::none);
    EXPECT_LE(row.narrow_products, row.products);
    EXPECT_TRUE(row.products % row.group == 0) << i;
  }
  EXPECT_FALSE(find_enumerator<tensor_unit>("hopper").has_value());
}

TEST(TensorUnits, TakeLegalPairingsAlone) {
  int legal = 0;
  for (int i = 0; i < format_count; ++i) {
    for (int j = 0; j < format_count; ++j) {
      legal += tensor_operands_of(format_at(i), format_at(j)).has_value() ? 1 : 0;
    }
  }
  EXPECT_EQ(legal, 7);  // fp16, bf16, tf32 with themselves; four of FP8
}

TEST(TensorUnits, MissingProductsAreZeros) {
  const tensor_arithmetic row = *find_tensor_row(hopper_mma_sync, tensor_operands::fp8);
  const accumulate_rule r = accumulate_rule_of(row, e4m3, e5m2, fp32, 32);
  std::array<tensor_operand, 32> a{};
  std::array<tensor_operand, 32> b{};
  for (std::uint32_t k = 0; k < 32; ++k) {
    a[k] = tensor_operand_of(r.a, r.subnormal_exponent_a, k < 13 ? 0x31 + k : 0);
    b[k] = tensor_operand_of(r.b, r.subnormal_exponent_b, k < 13 ? 0x3B - k : 0);
  }
  const std::uint32_t sum = accumulate(r, a.data(), b.data(), 32, one);
  EXPECT_EQ(accumulate(r, a.data(), b.data(), 13, one), sum);
  for (std::uint32_t k = 13; k < 32; ++k) {  // whatever lies there
    a[k] = tensor_operand_of(r.a, r.subnormal_exponent_a, k % 2 == 0 ? 0x7E : 0x7F);
    b[k] = tensor_operand_of(r.b, r.subnormal_exponent_b, 0x7B);
  }
  EXPECT_EQ(accumulate(r, a.data(), b.data(), 13, one), sum);
  for (std::uint32_t k = 13; k < 32; ++k) a[k] = b[k];  // numbers alone
  EXPECT_EQ(accumulate(r, a.data(), b.data(), 13, one), sum);
}

}  // namespace
}  // namespace samebits::numerics
