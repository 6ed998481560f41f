// numerics/hardware/accumulate.hpp at compile time: one case for each thing that tells units apart,
// with the result that an H200 gave for Hopper's rows.
#include "numerics/hardware/accumulate.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>

#include "samebits/core/tensor_unit.hpp"

namespace samebits::numerics {
namespace {

struct product {
  int k;
  std::uint32_t a;
  std::uint32_t b;
};

constexpr std::uint32_t run(tensor_unit unit, format_id a, format_id b, format_id result,
                            std::uint32_t c, std::initializer_list<product> products) {
  const tensor_arithmetic row = *find_tensor_row(unit, *tensor_operands_of(a, b));
  const accumulate_rule r = accumulate_rule_of(row, a, b, result, row.products);
  std::array<tensor_operand, 32> x{};
  std::array<tensor_operand, 32> y{};
  for (int k = 0; k < 32; ++k) {
    x[static_cast<std::size_t>(k)] = tensor_operand_of(r.a, r.subnormal_exponent_a, 0);
    y[static_cast<std::size_t>(k)] = tensor_operand_of(r.b, r.subnormal_exponent_b, 0);
  }
  for (const product& p : products) {
    x[static_cast<std::size_t>(p.k)] = tensor_operand_of(r.a, r.subnormal_exponent_a, p.a);
    y[static_cast<std::size_t>(p.k)] = tensor_operand_of(r.b, r.subnormal_exponent_b, p.b);
  }
  return accumulate(r, x.data(), y.data(), r.products, c);
}

using enum format_id;
using enum tensor_unit;

constexpr std::uint32_t fp16_result(std::uint32_t c, std::initializer_list<product> products,
                                    tensor_unit unit = hopper_wgmma) {
  return run(unit, fp16, fp16, fp32, c, products);
}
constexpr std::uint32_t bf16_result(std::uint32_t c, std::initializer_list<product> products) {
  return run(hopper_wgmma, bf16, bf16, fp32, c, products);
}
constexpr std::uint32_t fp8_result(std::uint32_t c, std::initializer_list<product> products,
                                   tensor_unit unit = hopper_wgmma) {
  return run(unit, e4m3, e4m3, fp32, c, products);
}

constexpr std::uint32_t one = 0x3F800000;
// fp16: 1 is 3C00, 2^-12 0C00, 2^-13 0800, 2^12 6C00
constexpr product one16 = {0, 0x3C00, 0x3C00};

// 1 - 2^-25 keeps its small term with 25 bits, and loses it with 24
static_assert(fp16_result(0, {one16, {1, 0x8C00, 0x0800}}) == 0x3F7FFFFF);
static_assert(fp16_result(0, {one16, {1, 0x8C00, 0x0800}}, ampere_mma) == one);
static_assert(fp16_result(0, {one16, {1, 0x8800, 0x0800}}) == one);  // 2^-26
// 2^24 + 1 - 2^24: one step of 16 on Hopper, two of 8 on Ampere, with 24 bits between them
constexpr product big = {0, 0x6C00, 0x6C00};
static_assert(fp16_result(0, {big, {1, 0x3C00, 0x3C00}, {8, 0xEC00, 0x6C00}}) == one);
static_assert(fp16_result(0, {big, {1, 0x3C00, 0x3C00}, {8, 0xEC00, 0x6C00}}, ampere_mma) == 0);
// the sum so far is a term like the others: -2^24 + 2^24 + 1
static_assert(fp16_result(0xCB800000, {big, {1, 0x3C00, 0x3C00}}) == one);
// 1 + 0.75 of the last bit: toward zero
static_assert(fp16_result(one, {{0, 0x0C00, 0x0E00}}) == one);
// 2.25 - 2.25 + 2^-25: products are not normalized
static_assert(fp16_result(0, {{0, 0x3E00, 0x3E00}, {1, 0xBE00, 0x3E00}, {2, 0x0C00, 0x0800}}) ==
              0x33000000);
// bf16: zero times 2^127 has no exponent
static_assert(bf16_result(0, {{0, 0x0000, 0x7F00}, {1, 0x3080, 0x3F80}}) == 0x30800000);
// all terms -0, and a negative sum that underflows: +0
static_assert(fp16_result(0x80000000, {{0, 0x8000, 0x3C00}}) == 0);
static_assert(bf16_result(0, {{0, 0x9A00, 0x1A00}}) == 0);  // -2^-150
// beyond the largest value: Inf, although toward zero
static_assert(bf16_result(0x7F7FFFFF, {{0, 0x7300, 0x4080}}) == 0x7F800000);
static_assert(bf16_result(0xFF7FFFFF, {{0, 0xF300, 0x4080}}) == 0xFF800000);
// 0 * Inf, Inf - Inf, NaN
static_assert(fp16_result(0, {{0, 0x0000, 0x7C00}}) == 0x7FFFFFFF);
static_assert(fp16_result(0, {{0, 0x3C00, 0x7C00}, {1, 0xBC00, 0x7C00}}) == 0x7FFFFFFF);
static_assert(fp16_result(0xFF800000, {one16}) == 0xFF800000);
static_assert(fp16_result(0xFFC00001, {one16}) == 0x7FFFFFFF);

// FP8 on wgmma: 13 bits below the largest exponent, 13 in the sum. e4m3: 1 is 38, 2^-6 08, 2^-7 04
static_assert(fp8_result(0x3F800600, {}) == 0x3F800400);          // 1 + 2^-13 + 2^-14
static_assert(fp8_result(one, {{0, 0x88, 0x04}}) == 0x3F7FF800);  // 1 - 2^-13
static_assert(fp8_result(one, {{0, 0x84, 0x04}}) == one);         // 1 - 2^-14
static_assert(fp8_result(one, {{0, 0x84, 0x04}}, hopper_mma_sync) == 0x3F7FFC00);
static_assert(fp8_result(one, {{0, 0x84, 0x04}}, blackwell_tcgen05) == 0x3F7FFC00);
// through fp16: indices 0, 1, 4, 5, ... make the first step (2^16 + 2^-8 - 2^16), and c is added
// when the products are rounded (2^15 + 2^-9 - 2^15)
constexpr auto one_step = {product{0, 0x78, 0x78}, product{1, 0x02, 0x38}, product{2, 0xF8, 0x78}};
static_assert(fp8_result(0, one_step, hopper_mma_sync) == 0);
static_assert(fp8_result(0, one_step, blackwell_tcgen05) == 0x3B800000);
constexpr auto two_terms = {product{0, 0x78, 0x70}, product{1, 0x01, 0x38}};
static_assert(fp8_result(0xC7000000, two_terms, hopper_mma_sync) == 0);
static_assert(fp8_result(0xC7000000, two_terms, blackwell_tcgen05) == 0x3B000000);
// conversion to fp16 normalizes a subnormal of e4m3, as the first or the second operand: the step
// keeps 25 bits below 2^6 = 2^15 * 2^-9, so the result of 2^6 - 2^6 + 2^-19 is 2^-19. e4m3: 2^-9 is
// 01, 2^-3 is 20; e5m2: 2^15 is 78, 2^-16 is 01. The expected result comes from the oracle
static_assert(run(hopper_mma_sync, e4m3, e5m2, fp32, 0,
                  {{0, 0x01, 0x78}, {1, 0x01, 0xF8}, {4, 0x20, 0x01}}) == 0x36000000);
static_assert(run(hopper_mma_sync, e5m2, e4m3, fp32, 0,
                  {{0, 0x78, 0x01}, {1, 0xF8, 0x01}, {4, 0x01, 0x20}}) == 0x36000000);
// FP16 results are rounded to nearest even: 1 + 2^-11 + 2^-25, + 2^-26
constexpr std::uint32_t half_result(std::initializer_list<product> products) {
  return run(hopper_mma_sync, fp16, fp16, fp16, 0, products);
}
static_assert(half_result({one16, {1, 0x1000, 0x3C00}, {2, 0x0C00, 0x0800}}) == 0x3C01);
static_assert(half_result({one16, {1, 0x1000, 0x3C00}, {2, 0x0800, 0x0800}}) == 0x3C00);
// tf32: the low 13 bits of an operand are not read, not even of a NaN
static_assert(run(hopper_wgmma, tf32, tf32, fp32, 0, {{0, 0x3F801FFF, 0x3F800000}}) == one);
static_assert(run(hopper_wgmma, tf32, tf32, fp32, 0, {{0, 0x7F801FFF, 0x3F800000}}) == 0x7F800000);
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
