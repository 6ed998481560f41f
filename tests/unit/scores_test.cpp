// What attention does to scores: the mask's row of each row of scores, what the diagonal hides, the
// places of roundings. On whole rows: the suites of functions of rows.
#include "numerics/hardware/torch_operators/scores.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>

#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/format.hpp"

namespace samebits {
namespace {

using namespace numerics::torch_2_11;
using numerics::binary32::inf;
using numerics::binary32::one;

constexpr std::int64_t word = std::int64_t{1} << 32;
constexpr std::uint32_t two = 0x40000000u;

TEST(Scores, DefaultsHideNothing) {
  const score_rule rule;
  EXPECT_EQ(rule.visible(0, 5), 5);
  EXPECT_EQ(rule.heads, 1);
  EXPECT_EQ(rule.queries, 1);
  EXPECT_EQ(rule.scale, one);
}

TEST(Scores, MaskRowsOfBatchesHeadsAndQueries) {
  const score_rule rule = {.heads = 3, .queries = 5, .steps = {1000, 100, 7}};
  EXPECT_EQ(rule.mask_row_of(0), 0);
  EXPECT_EQ(rule.mask_row_of(4), 4 * 7);
  EXPECT_EQ(rule.mask_row_of(5), 100);
  EXPECT_EQ(rule.mask_row_of(2 * 15 + 1 * 5 + 3), 2 * 1000 + 100 + 3 * 7);
}

TEST(Scores, RowsHeadsAndQueriesMayNeedMoreThan32Bits) {
  // Each of three numbers alone, just below, at and above the limit.
  for (const std::int64_t big : {word - 1, word, word + 1, 2 * word + 9}) {
    const score_rule of_rows = {.heads = 3, .queries = 5, .steps = {1, 10, 100}};
    EXPECT_EQ(of_rows.mask_row_of(big), big / 15 + big / 5 % 3 * 10 + big % 5 * 100) << big;
    const score_rule of_heads = {.heads = big, .queries = 5, .steps = {1, 10, 100}};
    EXPECT_EQ(of_heads.mask_row_of(23), 4 * 10 + 3 * 100) << big;
    const score_rule of_queries = {.heads = 3, .queries = big, .steps = {1, 10, 100}};
    EXPECT_EQ(of_queries.mask_row_of(23), 23 * 100) << big;
  }
}

TEST(Scores, ADiagonalHidesLaterColumns) {
  const score_rule rule = {.causal = true, .queries = 4};
  EXPECT_EQ(rule.visible(0, 9), 1);
  EXPECT_EQ(rule.visible(7, 9), 4);
  EXPECT_EQ(rule.visible(7, 3), 3);
}

TEST(Scores, MasksFillOrAreAdded) {
  const auto masked = [](mask_use use, std::uint32_t x, std::uint32_t mask) {
    const tensor_numbers<std::uint32_t> numbers{format_id::bf16};
    return masked_score({.scale = two, .mask = use}, numbers, x, mask);
  };
  EXPECT_EQ(masked(mask_use::none, one, 1u), two);  // the mask is not read
  EXPECT_EQ(masked(mask_use::fills, one, 0u), two);
  EXPECT_EQ(masked(mask_use::fills, one, 1u), 0x80000000u | inf);
  // 2 * (1 + 2^-23) is rounded to bf16 before the mask is added.
  EXPECT_EQ(masked(mask_use::added, one + 1, one), std::bit_cast<std::uint32_t>(3.0f));
}

TEST(Scores, AHiddenScoreHasNoGradient) {
  const std::uint32_t huge = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::max());
  EXPECT_EQ(score_gradient<std::uint32_t>({.scale = huge}, one, true), 0u);
  EXPECT_EQ(score_gradient<std::uint32_t>({.scale = two}, one, false), two);
}

}  // namespace
}  // namespace samebits
