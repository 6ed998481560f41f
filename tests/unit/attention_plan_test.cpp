// Plans of attention against PyTorch's and FlashAttention's expressions, written with the
// processor's floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "numerics/hardware/torch_operators/attention_plan.hpp"

namespace samebits {
namespace {

namespace torch = numerics::torch_2_11;
using torch::attention_plan;
using torch::attention_problem;

attention_problem problem_of(attention_kernel kernel, int dimension = 64) {
  return {kernel, format_id::bf16, false, 2, 3, 300, 300, dimension, 0, 132, 1};
}

// The sum is that of num_splits_heuristic() of flash_api.cpp.
TEST(AttentionPlan, ChoosesPartsAsPyTorchDoes) {
  std::uint64_t sum = 0;
  for (const int places : {1, 2, 8, 64, 114, 156, 264, 296}) {
    for (int tiles = 1; tiles <= 300; tiles += tiles < 20 ? 1 : 7) {
      // 3 tiles, 64 places and 97 blocks: 17 parts are exactly 85 % as busy as 20
      for (const int blocks : {1, 2, 3, 4, 5, 7, 16, 31, 64, 97, 127, 128, 129, 400}) {
        const int splits = torch::chosen_splits(tiles, places, blocks);
        sum = sum * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(splits);
      }
    }
  }
  EXPECT_EQ(sum, 0xFF4EC069E2F298F5u);
  EXPECT_EQ(torch::chosen_splits(std::int64_t{1} << 40, std::int64_t{1} << 32, 9), 1);
}

TEST(AttentionPlan, ScalesAreThoseOfTheCaller) {
  for (const int dimension : {64, 128}) {
    for (const float given : {0.0f, -0.0f, 0.3f, 1.0f, 0.125f, 3e-40f, 1e30f}) {
      for (const auto kernel : {attention_kernel::flash, attention_kernel::math}) {
        attention_problem p = problem_of(kernel, dimension);
        p.scale = std::bit_cast<std::uint32_t>(given);
        const double exact = given == 0 ? 1 / std::sqrt(double(dimension)) : double{given};
        const auto scale =
            static_cast<float>(kernel == attention_kernel::math ? std::sqrt(exact) : exact);
        const auto log2 = static_cast<float>(double{scale} * std::numbers::log2e);
        const attention_plan plan = torch::plan_of(p, false);
        ASSERT_EQ(plan.rule.kernel, kernel);
        ASSERT_EQ(plan.rule.scale, std::bit_cast<std::uint32_t>(scale)) << given;
        ASSERT_EQ(plan.rule.scale_log2, std::bit_cast<std::uint32_t>(log2)) << given;
      }
    }
  }
}

void expect_tiles(const attention_plan& p, int rows, int block, int splits) {
  EXPECT_EQ(p.rows, rows);
  EXPECT_EQ(p.block, block);
  EXPECT_EQ(p.splits, splits);
}

TEST(AttentionPlan, TilesAreThoseInTheNamesOfTheKernels) {
  for (const int dimension : {64, 128}) {
    for (const bool backward : {false, true}) {
      attention_problem p = problem_of(attention_kernel::cudnn, dimension);
      p.splits = 0;
      expect_tiles(torch::plan_of(p, backward), 128, 128, 1);
    }
    const bool narrow = dimension == 64;
    attention_problem p = problem_of(attention_kernel::flash, dimension);
    expect_tiles(torch::plan_of(p, false), 128, narrow ? 128 : 64, 1);
    expect_tiles(torch::plan_of(p, true), narrow ? 128 : 64, 128, 1);
    EXPECT_EQ(torch::plan_of(p, true).dq_buffers, 22);  // of 132 / 6
    EXPECT_EQ(torch::plan_of(p, false).dq_buffers, 1);
    p.multiprocessors = 133;
    EXPECT_EQ(torch::plan_of(p, true).dq_buffers, 23);
    p.splits = 5;
    expect_tiles(torch::plan_of(p, false), 64, narrow ? 256 : 128, 5);
    expect_tiles(torch::plan_of(p, true), narrow ? 128 : 64, 128, 1);
    p.splits = 0;
    p.keys = 5000;
    p.multiprocessors = 132;
    expect_tiles(torch::plan_of(p, false), 64, narrow ? 256 : 128, 7);
  }
}

TEST(AttentionPlan, KeysOfAQueryEndBehindItsTileOrTheLastKey) {
  attention_problem problem = problem_of(attention_kernel::flash);
  problem.splits = 2;  // tiles of 64 queries, blocks of 256 keys
  problem.queries = problem.keys = 1025;
  for (const bool causal : {false, true}) {
    problem.causal = causal;
    const attention_plan p = torch::plan_of(problem, false);
    for (std::int64_t query = 0; query < p.queries; ++query) {
      EXPECT_EQ(torch::visible_keys(p, query), causal ? query + 1 : 1025);
      const std::int64_t tile_end = (query / 64 + 1) * 64;
      const std::int64_t blocks = causal ? std::min<std::int64_t>((tile_end + 255) / 256, 5) : 5;
      const torch::block_visits first = torch::key_blocks(p, query, 0);
      const torch::block_visits second = torch::key_blocks(p, query, 1);
      ASSERT_EQ(first.begin, 0);
      ASSERT_EQ(first.end, std::min<std::int64_t>(blocks, 3));
      ASSERT_EQ(second.begin, 3);
      ASSERT_EQ(second.is_empty(), blocks <= 3) << query;
      if (!second.is_empty()) {
        ASSERT_EQ(second.end, blocks);
      }
      ASSERT_EQ(first.at(0), first.end - 1);  // the last block first
      ASSERT_EQ(first.at(first.end - 1), 0);
    }
  }
  problem.kernel = attention_kernel::cudnn;
  const attention_plan cudnn = torch::plan_of(problem, false);
  EXPECT_EQ(torch::key_blocks(cudnn, 0, 0).end, 1);
  EXPECT_EQ(torch::key_blocks(cudnn, 1024, 0).at(0), 0);
  EXPECT_EQ(torch::key_blocks(cudnn, 1024, 0).at(8), 8);
}

TEST(AttentionPlan, TilesOfABlockOfKeysBeginWhereQueriesSeeIt) {
  attention_problem problem = problem_of(attention_kernel::flash, 128);  // 64 queries, 128 keys
  EXPECT_EQ(torch::query_tiles(torch::plan_of(problem, true), 2).begin, 0);
  problem.causal = true;
  const attention_plan p = torch::plan_of(problem, true);
  const torch::block_visits tiles = torch::query_tiles(p, 2);
  EXPECT_EQ(tiles.begin, 4);
  EXPECT_EQ(tiles.end, 5);
  EXPECT_EQ(torch::query_tiles(p, 0).at(0), 4);
  problem.kernel = attention_kernel::cudnn;
  EXPECT_EQ(torch::query_tiles(torch::plan_of(problem, true), 1).at(0), 1);
}

}  // namespace
}  // namespace samebits
