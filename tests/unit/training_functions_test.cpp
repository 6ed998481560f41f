// Losses, gradients of parameters, and norms of lists by torch_2_11: PyTorch's kernels written
// thread by thread, with the processor's floats, against the definition.
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

floats random_numbers(std::int64_t n, std::uint64_t seed, format_id format = format_id::fp32) {
  return numbers(random_row(format, n, seed));
}

// Loss.cu

/// nll_loss_threads()
int threads_for(std::int64_t rows) {
  const double wanted = std::round(std::log2(static_cast<double>(rows / 16)));
  return wanted < 5 ? 32 : wanted > 10 ? 1024 : 1 << static_cast<int>(wanted);
}
float nll_kernel(const floats& picked) {
  const auto threads =
      static_cast<std::size_t>(threads_for(static_cast<std::int64_t>(picked.size())));
  floats sums(threads, 0.0f);
  for (std::size_t t = 0; t < threads; ++t) {
    for (std::size_t i = t; i < picked.size(); i += threads) sums[t] -= picked[i];
  }
  for (std::size_t half = threads / 2; half > 0; half /= 2) {
    for (std::size_t t = 0; t < half; ++t) sums[t] += sums[t + half];
  }
  return sums[0];
}

TEST(NllLoss, ChoosesThreadsAsPyTorchDoes) {
  for (std::int64_t rows = 1; rows < 70'000; ++rows) {
    ASSERT_EQ(torch::nll_threads(rows), threads_for(rows)) << rows;
  }
  EXPECT_EQ(torch::nll_threads(std::int64_t{1} << 34), 1024);
}
TEST(NllLoss, ZerosAddToZero) {
  EXPECT_EQ(torch::nll_sum(100, [](std::int64_t) { return 0u; }), 0u);
}
TEST(NllLoss, AddsAsTheKernel) {
  for (const std::int64_t rows : {1, 2, 31, 33, 100, 512, 777, 1000, 2047, 5000, 20'000, 40'000}) {
    const floats picked = random_numbers(rows, static_cast<std::uint64_t>(rows));
    const auto at = [&](std::int64_t row) {
      return bits(picked.at(static_cast<std::size_t>(row)));
    };
    ASSERT_EQ(torch::nll_sum(rows, at), bits(nll_kernel(picked))) << rows;
  }
}

// LossNLL.cpp: cross_entropy_loss_label_smoothing

/// The reduction and the smoothing as operators on floats.
struct plain_loss {
  format_id format;
  bool mean;
  double smoothing;
  std::int64_t classes, counted;

  [[nodiscard]] float rounded(float x) const { return stored(format, x); }
  [[nodiscard]] float averaged(float x) const {
    return mean ? rounded(x / rounded(static_cast<float>(counted))) : x;
  }
  [[nodiscard]] float of_target(float x) const {
    return rounded(x * static_cast<float>(1 - smoothing));
  }
  [[nodiscard]] float of_class(float x) const {
    return rounded(x * static_cast<float>(smoothing / static_cast<double>(classes)));
  }
};

void expect_as_plain(const plain_loss& p, float x, float y) {
  const torch::cross_entropy_rule r = {
      p.format, p.mean ? loss_reduction::mean : loss_reduction::sum,
      std::bit_cast<std::uint64_t>(p.smoothing), p.classes, p.counted};
  const bool smooths = p.smoothing != 0;
  ASSERT_EQ(r.smooths(), smooths);
  const auto count = static_cast<float>(p.counted);
  ASSERT_EQ(torch::nll_loss(r, bits(x)), bits(p.rounded(p.mean ? x / count : x)));
  ASSERT_EQ(r.mean(bits(y)), bits(p.averaged(y)));
  const auto [target, others] = torch::loss_gradient_of(r, bits(y), false);
  if (!smooths) {
    ASSERT_EQ(target, bits(-p.averaged(y)));
    ASSERT_EQ(others, 0u);
    return;
  }
  ASSERT_EQ(torch::smoothed_loss(r, bits(x), bits(y)),
            bits(p.rounded(p.of_target(x) + p.of_class(y))));
  const float all = -p.averaged(p.of_class(y));
  ASSERT_EQ(others, bits(all));
  ASSERT_EQ(target, bits(p.rounded(-p.averaged(p.of_target(y)) + all)));
}

TEST(CrossEntropy, StepsAreThoseOfTheOperators) {
  for (const format_id format : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    const floats x = random_numbers(50, 5, format);
    for (const bool mean : {false, true}) {
      for (const double smoothing : {0.0, -0.0, 0.1, 0.3, 1.0}) {
        for (const std::int64_t classes : {1, 3, 1000, 50257, 40'000'001}) {
          for (const std::int64_t counted : {1, 7, 1000, 4099, 16'777'217}) {
            for (std::size_t i = 0; i + 1 < x.size(); ++i) {
              expect_as_plain({format, mean, smoothing, classes, counted}, x[i], x[i + 1]);
            }
          }
        }
      }
    }
  }
}
TEST(CrossEntropy, LossesOfAutocastAreNotRounded) {
  for (const format_id format : {format_id::fp16, format_id::bf16}) {
    for (const float x : random_numbers(500, 5, format_id::fp32)) {
      const torch::cross_entropy_rule r = {format, loss_reduction::mean, 0, 10,
                                           4099,   format_id::fp32};
      ASSERT_EQ(torch::nll_loss(r, bits(x)), bits(x / 4099));
      const auto [target, others] = torch::loss_gradient_of(r, bits(x), false);
      ASSERT_EQ(target, torch::stored(format, bits(-(x / 4099))));
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

// layer_norm_kernel.cu: LaunchGammaBetaBackwardCUDAKernel() and
// GammaBetaBackwardCUDAKernelTemplate()

TEST(NormParameters, EveryRowBelongsToTheThreadOfTheKernel) {
  struct launch {
    std::int64_t threads, rows_of_pass;
  };
  for (const std::int64_t rows : {1, 7, 8, 63, 64, 65, 127, 128, 200, 255, 256, 1000, 65536}) {
    const launch l = rows < 64    ? launch{1, 8}
                     : rows < 128 ? launch{8, 64}
                     : rows < 256 ? launch{16, 128}
                                  : launch{32, 256};
    const torch::parameter_order order = torch::norm_parameter_order(rows, 64, 132);
    ASSERT_EQ(order.threads, l.threads) << rows;
    ASSERT_EQ(order.blocks, 1) << rows;
    ASSERT_EQ(order.rows_of_block, rows);
    const std::int64_t each = l.rows_of_pass / l.threads;
    std::int64_t seen = 0;
    for (std::int64_t t = 0; t < l.threads; ++t) {
      for (std::int64_t pass = 0; pass < rows; pass += l.rows_of_pass) {
        for (std::int64_t i = 0; i < each && pass + t * each + i < rows; ++i, ++seen) {
          ASSERT_EQ(order.thread_of(pass + t * each + i), t) << rows;
        }
      }
    }
    ASSERT_EQ(seen, rows);
  }
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

// Embedding.cu and EmbeddingBackwardKernel.cu

float few_kernel(format_id format, const std::vector<std::int64_t>& rows, const floats& values) {
  float total = 0;
  for (std::int64_t block = 0; block <= rows.back() / 32; ++block) {
    float sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] / 32 == block) sum += values[i];
    }
    total = stored(format, total + stored(format, sum));
  }
  return total;
}
float many_kernel(const floats& values) {
  float total = 0;
  for (std::size_t first = 0; first < values.size(); first += 10) {
    float part = 0;
    for (std::size_t i = first; i < std::min(first + 10, values.size()); ++i) part += values[i];
    total += part;
  }
  return total;
}

TEST(Embedding, AddsAsTheKernels) {
  for (const format_id format : {format_id::fp32, format_id::bf16}) {
    for (const std::int64_t count : {1, 2, 9, 10, 11, 20, 21, 64, 333}) {
      const auto seed = static_cast<std::uint64_t>(count);
      const floats values = random_numbers(count, seed, format);
      std::vector<std::int64_t> rows;
      std::uint64_t word = seed;
      std::int64_t row = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        word = word * 6364136223846793005u + 1442695040888963407u;
        rows.push_back(row += 1 + static_cast<std::int64_t>(word >> 33) % (i % 40 < 20 ? 3 : 40));
      }
      const auto at = [&](std::int64_t of) {
        const auto i = std::lower_bound(rows.begin(), rows.end(), of) - rows.begin();
        return bits(values[static_cast<std::size_t>(i)]);
      };
      ASSERT_EQ(torch::embedding_sum(true, format, rows.data(), count, at),
                bits(few_kernel(format, rows, values)))
          << count;
      ASSERT_EQ(torch::embedding_sum(false, format, rows.data(), count, at),
                bits(many_kernel(values)))
          << count;
    }
  }
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

// ForeachReduceOp.cu: LpNormFunctor and lpnorm_cleanup

float lp_norm_block(const float* x, std::int64_t n) {
  constexpr std::int64_t chunk = 65536, threads = 512, each = 4;
  const std::int64_t limit = std::min(n, chunk);
  floats sums;
  for (std::int64_t t = 0; t < threads; ++t) {
    float values[each] = {};
    if (n % each == 0) {
      for (std::int64_t i = t; i * each < limit; i += threads) {
        for (std::int64_t j = 0; j < each; ++j) {
          values[j] = std::fma(x[i * each + j], x[i * each + j], values[j]);
        }
      }
    } else {
      for (std::int64_t start = 0; start < limit; start += threads * each) {
        for (std::int64_t j = 0; j < each; ++j) {
          const std::int64_t i = start + t + j * threads;
          if (i < limit) values[j] = std::fma(x[i], x[i], values[j]);
        }
      }
    }
    float sum = 0;
    for (const float value : values) sum += value;
    sums.push_back(sum);
  }
  return block_sum(sums);
}

TEST(ForeachNorm, AddsAsTheKernels) {
  for (const std::int64_t n :
       {1, 3, 4, 511, 2047, 2048, 2049, 65'535, 65'536, 65'537, 131'072, 200'001}) {
    const floats x = random_numbers(n, static_cast<std::uint64_t>(n));
    floats threads(512, 0.0f);
    row chunks;
    for (std::int64_t first = 0; first < n; first += 65'536) {
      const float sum = lp_norm_block(x.data() + first, n - first);
      threads[static_cast<std::size_t>(first / 65'536 % 512)] += sum;
      row sums(torch::foreach_sums);
      const bool vectors = torch::reads_vectors(n - first);
      for (std::int64_t i = 0; i < std::min(n - first, torch::foreach_chunk); ++i) {
        const float value = x[static_cast<std::size_t>(first + i)];
        std::uint32_t& to = sums[static_cast<std::size_t>(torch::foreach_place(vectors, i))];
        to = bits(std::fma(value, value, number(to)));
      }
      ASSERT_EQ(torch::foreach_block_sum(sums.data(), 4), bits(sum)) << n;
      chunks.push_back(bits(sum));
    }
    ASSERT_EQ(torch::foreach_norm_of(chunks.data(), static_cast<std::int64_t>(chunks.size())),
              bits(std::sqrt(block_sum(threads))))
        << n;
  }
}
TEST(ForeachNorm, ZerosHaveTheNormZero) {
  const row sums(torch::foreach_sums);
  EXPECT_EQ(torch::foreach_block_sum(sums.data(), 4), 0u);
  EXPECT_EQ(torch::foreach_norm_of(sums.data(), 600), 0u);
}
// clip_grad.py
TEST(ClipFactor, EveryStepIsRounded) {
  for (const format_id format : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    const auto rounded = [&](float x) { return stored(format, x); };
    floats norms = random_numbers(2000, 11, format);
    norms.insert(norms.end(), {0, 1e-6f, 1, INFINITY, NAN});
    for (float norm : norms) {
      norm = std::fabs(norm);
      for (const float most : {0.0f, 1e-8f, 0.5f, 1.0f, 5.0f, 1e30f}) {
        const float factor = rounded(rounded(1 / rounded(norm + 1e-6f)) * most);
        ASSERT_EQ(bits(number(torch::clip_factor(format, bits(norm), bits(most)))),
                  bits(factor > 1 ? 1 : factor))
            << norm << ' ' << most;
      }
    }
  }
}

TEST(ForeachNorm, ManyChunksGoRoundTheThreads) {
  const floats chunks = random_numbers(1500, 7);
  floats threads(512, 0.0f);
  row codes;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    threads[i % 512] += std::fabs(chunks[i]);
    codes.push_back(bits(std::fabs(chunks[i])));
  }
  EXPECT_EQ(torch::foreach_norm_of(codes.data(), 1500), bits(std::sqrt(block_sum(threads))));
}

}  // namespace
}  // namespace samebits
