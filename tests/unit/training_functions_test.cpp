// Losses, gradients of parameters, and norms of lists by torch_2_11. The sums are those of a program
// that has PyTorch's kernels thread by thread in the processor's floats and shares no code with the
// library. python.training_functions compares with what PyTorch returned.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/hardware/torch_operators/cross_entropy.hpp"
#include "numerics/hardware/torch_operators/embedding_gradient.hpp"
#include "numerics/hardware/torch_operators/foreach_norm.hpp"
#include "numerics/hardware/torch_operators/nll_loss.hpp"
#include "numerics/hardware/torch_operators/norm_parameters.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;

row random_numbers(std::int64_t n, std::uint64_t seed, format_id format = format_id::fp32) {
  return random_row(format, n, seed);
}

TEST(NllLoss, ChoosesThreadsAsPyTorchDoes) {
  word_sum threads;
  for (std::int64_t rows = 1; rows < 70'000; ++rows) {
    threads.add(static_cast<std::uint32_t>(torch::nll_threads(rows)));
  }
  EXPECT_EQ(threads.value(), 0x294EC1A5621C5860u);
  EXPECT_EQ(torch::nll_threads(std::int64_t{1} << 34), 1024);
}
TEST(NllLoss, ZerosAddToZero) {
  EXPECT_EQ(torch::nll_sum(100, [](std::int64_t) { return 0u; }), 0u);
}
TEST(NllLoss, AddsAsTheKernel) {
  word_sum sums;
  for (const std::int64_t rows : {1, 2, 31, 33, 100, 512, 777, 1000, 2047, 5000, 20'000, 40'000}) {
    const row picked = random_numbers(rows, static_cast<std::uint64_t>(rows));
    sums.add(torch::nll_sum(
        rows, [&](std::int64_t i) { return picked.at(static_cast<std::size_t>(i)); }));
  }
  EXPECT_EQ(sums.value(), 0x747F45CDC5BBD1FEu);
}

/// Adds each step of losses and gradients on numbers of a format.
void add_steps(word_sum& sum, const torch::cross_entropy_rule& r, const row& x) {
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const auto [target, others] = torch::loss_gradient_of(r, x[i + 1], false);
    sum.add({torch::nll_loss(r, x[i]), r.mean(x[i + 1]), target, others});
    if (r.smooths()) sum.add(torch::smoothed_loss(r, x[i], x[i + 1]));
  }
}

std::uint64_t sum_of_steps(format_id format) {
  word_sum sum;
  const row x = random_numbers(50, 5, format);
  for (const auto reduction : {loss_reduction::sum, loss_reduction::mean}) {
    for (const double smoothing : {0.0, -0.0, 0.1, 0.3, 1.0}) {
      for (const std::int64_t classes : {1, 3, 1000, 50257, 40'000'001}) {
        for (const std::int64_t counted : {1, 7, 1000, 4099, 16'777'217}) {
          add_steps(sum,
                    {format, reduction, std::bit_cast<std::uint64_t>(smoothing), classes, counted},
                    x);
        }
      }
    }
  }
  return sum.value();
}

TEST(CrossEntropy, StepsAreThoseOfTheOperators) {
  EXPECT_EQ(sum_of_steps(format_id::fp32), 0x526F8DD8CC0D5985u);
  EXPECT_EQ(sum_of_steps(format_id::fp16), 0x29E8D81937768000u);
  EXPECT_EQ(sum_of_steps(format_id::bf16), 0xA06DE12975450000u);
}
TEST(CrossEntropy, LossesOfAutocastAreNotRounded) {
  for (const format_id format : {format_id::fp16, format_id::bf16}) {
    for (const std::uint32_t x : random_numbers(500, 5)) {
      const torch::cross_entropy_rule r = {format, loss_reduction::mean, 0, 10,
                                           4099,   format_id::fp32};
      ASSERT_EQ(torch::nll_loss(r, x), bits(number(x) / 4099));
      const auto [target, others] = torch::loss_gradient_of(r, x, false);
      ASSERT_EQ(target, torch::stored(format, bits(-(number(x) / 4099))));
      ASSERT_EQ(others, 0u);
    }
  }
}
TEST(CrossEntropy, IgnoredRowsHaveNoGradient) {
  const torch::cross_entropy_rule r = {format_id::fp32, loss_reduction::none,
                                       std::bit_cast<std::uint64_t>(0.1), 5, 0};
  EXPECT_FALSE(r.reduces());
  const auto [target, others] = torch::loss_gradient_of(r, bits(1), true);
  EXPECT_EQ(target, 0u);
  EXPECT_EQ(others, 0u);
}

TEST(NormParameters, EveryRowBelongsToTheThreadOfTheKernel) {
  word_sum sum;
  for (const std::int64_t rows : {1, 7, 8, 63, 64, 65, 127, 128, 200, 255, 256, 1000, 65536}) {
    const torch::parameter_order order = torch::norm_parameter_order(rows, 64, 132);
    ASSERT_EQ(order.blocks, 1) << rows;
    ASSERT_EQ(order.rows_of_block, rows);
    sum.add(static_cast<std::uint32_t>(order.threads));
    for (std::int64_t i = 0; i < rows; ++i) {
      sum.add(static_cast<std::uint32_t>(order.thread_of(i)));
    }
  }
  EXPECT_EQ(sum.value(), 0x3FDB5345819E8FC2u);
}
TEST(NormParameters, ManyRowsOfFewColumnsAreManyBlocks) {
  const torch::parameter_order order = torch::norm_parameter_order(70'000, 64, 132);
  EXPECT_EQ(order.threads, 1);
  EXPECT_EQ(order.blocks, 2188);  // the recorded grid
  EXPECT_EQ(order.rows_of_block, 32);
  for (const std::int64_t row : {0, 31, 32, 69'999}) EXPECT_EQ(order.thread_of(row), 0);
  EXPECT_EQ(torch::norm_parameter_order(65'536, 64, 132).blocks, 1);
  EXPECT_EQ(torch::norm_parameter_order(65'537, 64, 132).blocks, 2049);
  EXPECT_EQ(torch::norm_parameter_order(65'568, 64, 132).blocks, 2049);
  EXPECT_EQ(torch::norm_parameter_order(65'569, 64, 132).blocks, 2050);
  // cols / 32 is below half of the multiprocessors
  EXPECT_EQ(torch::norm_parameter_order(70'000, 66 * 32 - 1, 132).blocks, 2188);
  EXPECT_EQ(torch::norm_parameter_order(70'000, 66 * 32, 132).blocks, 1);
  EXPECT_EQ(torch::norm_parameter_order(70'000, 66 * 32, 134).blocks, 2188);
}

/// The sum of an element's gradients over more and more rows, by both kernels.
std::uint64_t sum_of_embeddings(format_id format) {
  word_sum sum;
  for (const std::int64_t count : {1, 2, 9, 10, 11, 20, 21, 64, 333}) {
    const auto seed = static_cast<std::uint64_t>(count);
    const row values = random_numbers(count, seed, format);
    std::vector<std::int64_t> rows;
    std::uint64_t word = seed;
    std::int64_t row = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      word = word * 6364136223846793005u + 1442695040888963407u;
      rows.push_back(row += 1 + static_cast<std::int64_t>(word >> 33) % (i % 40 < 20 ? 3 : 40));
    }
    const auto at = [&](std::int64_t of) {
      const auto i = std::lower_bound(rows.begin(), rows.end(), of) - rows.begin();
      return values[static_cast<std::size_t>(i)];
    };
    for (const bool few : {true, false}) {
      sum.add(torch::embedding_sum(few, format, rows.data(), count, at));
    }
  }
  return sum.value();
}

TEST(Embedding, AddsAsTheKernels) {
  EXPECT_EQ(sum_of_embeddings(format_id::fp32), 0x3349856DE05057B9u);
  EXPECT_EQ(sum_of_embeddings(format_id::bf16), 0x9228F8A9D400F7F0u);
}
TEST(Embedding, ZerosAddToZero) {
  const std::int64_t rows[] = {3, 4, 50};
  const auto zero = [](std::int64_t) { return 0u; };
  EXPECT_EQ(torch::embedding_sum(true, format_id::fp32, rows, 3, zero), 0u);
  EXPECT_EQ(torch::embedding_sum(false, format_id::fp32, rows, 3, zero), 0u);
}
TEST(Embedding, ChoosesTheKernelAsPyTorchDoes) {
  EXPECT_TRUE(torch::few_indices(3072, -1));
  EXPECT_FALSE(torch::few_indices(3073, -1));
  EXPECT_FALSE(torch::few_indices(5, 0));
}

TEST(ForeachNorm, AddsAsTheKernels) {
  word_sum sum;
  for (const std::int64_t n :
       {1, 3, 4, 511, 2047, 2048, 2049, 65'535, 65'536, 65'537, 131'072, 200'001}) {
    const row x = random_numbers(n, static_cast<std::uint64_t>(n));
    row chunks;
    for (std::int64_t first = 0; first < n; first += torch::foreach_chunk) {
      row sums(torch::foreach_sums);
      const bool vectors = torch::reads_vectors(n - first);
      for (std::int64_t i = 0; i < std::min(n - first, torch::foreach_chunk); ++i) {
        const float value = number(x[static_cast<std::size_t>(first + i)]);
        std::uint32_t& to = sums[static_cast<std::size_t>(torch::foreach_place(vectors, i))];
        to = bits(std::fma(value, value, number(to)));
      }
      chunks.push_back(torch::foreach_block_sum(sums.data(), 4));
    }
    sum.add(chunks);
    sum.add(torch::foreach_norm_of(chunks.data(), static_cast<std::int64_t>(chunks.size())));
  }
  EXPECT_EQ(sum.value(), 0x2D4EE895675F1F37u);
}
TEST(ForeachNorm, ManyChunksGoRoundTheThreads) {
  row chunks = random_numbers(1500, 7);
  for (std::uint32_t& chunk : chunks) chunk = numerics::binary32::magnitude(chunk);
  EXPECT_EQ(torch::foreach_norm_of(chunks.data(), 1500), 0x425669ACu);
}
TEST(ForeachNorm, ZerosHaveTheNormZero) {
  const row sums(torch::foreach_sums);
  EXPECT_EQ(torch::foreach_block_sum(sums.data(), 4), 0u);
  EXPECT_EQ(torch::foreach_norm_of(sums.data(), 600), 0u);
}

std::uint64_t sum_of_clip_factors(format_id format) {
  word_sum sum;
  row norms = random_numbers(2000, 11, format);
  for (const float special : {0.0f, 1e-6f, 1.0f, INFINITY, NAN}) norms.push_back(bits(special));
  for (const std::uint32_t norm : norms) {
    for (const float most : {0.0f, 1e-8f, 0.5f, 1.0f, 5.0f, 1e30f}) {
      const std::uint32_t magnitude = numerics::binary32::magnitude(norm);
      sum.add(bits(number(torch::clip_factor(format, magnitude, bits(most)))));
    }
  }
  return sum.value();
}

TEST(ClipFactor, EveryStepIsRounded) {
  EXPECT_EQ(sum_of_clip_factors(format_id::fp32), 0x8E77F12BBE7C4E2Du);
  EXPECT_EQ(sum_of_clip_factors(format_id::fp16), 0xAB78B8C41FA94AD2u);
  EXPECT_EQ(sum_of_clip_factors(format_id::bf16), 0xF88E3FF014070CCEu);
}

}  // namespace
}  // namespace samebits
