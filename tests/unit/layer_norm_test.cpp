// LayerNorm and RMSNorm by torch_2_11: PyTorch's kernels written thread by thread, with the
// processor's floats, against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;

float rsqrtf_of(float x) { return number(numerics::cuda_13_0::rsqrt(bits(x))); }

// layer_norm_kernel.cu

struct welford {
  float mean = 0, squares = 0, count = 0;
};
/// cuWelfordOnlineSum() and cuWelfordCombine() with the fused steps of the machine code.
welford online(float x, const welford& a) {
  const float delta = x - a.mean, count = a.count + 1, mean = std::fma(delta, 1 / count, a.mean);
  return {mean, std::fma(delta, x - mean, a.squares), count};
}
welford combine(const welford& b, const welford& a) {
  const float delta = b.mean - a.mean, count = a.count + b.count;
  if (!(count > 0)) return {};
  const float factor = 1 / count, na = a.count * factor, nb = b.count * factor;
  return {std::fma(na, a.mean, nb * b.mean),
          std::fma(delta * delta * a.count, nb, a.squares + b.squares), count};
}
/// WelfordOps of SharedReduceOps.h
welford online_single(float x, const welford& a) {
  const float delta = x - a.mean, count = a.count + 1, mean = a.mean + delta / count;
  return {mean, std::fma(delta, x - mean, a.squares), count};
}
welford combine_singles(const welford& a, const welford& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const float delta = b.mean - a.mean, count = a.count + b.count, nb = b.count / count;
  return {std::fma(delta, nb, a.mean), std::fma(delta * delta * a.count, nb, a.squares + b.squares),
          count};
}
template <class Combine>
welford warp_welford(std::vector<welford> lanes, const Combine& combine_two) {
  for (std::size_t offset = 16; offset > 0; offset /= 2) {
    const std::vector<welford> before = lanes;
    for (std::size_t l = 0; l + offset < 32; ++l) {
      lanes[l] = combine_two(before[l], before[l + offset]);
    }
  }
  return lanes[0];
}

welford vector_moments(const floats& x) {
  std::vector<welford> warps;
  for (std::size_t w = 0; w < 4; ++w) {
    std::vector<welford> lanes(32);
    for (std::size_t l = 0; l < 32; ++l) {
      for (std::size_t i = 32 * w + l; i < x.size() / 4; i += 128) {
        for (std::size_t j = 0; j < 4; ++j) lanes[l] = online(x[4 * i + j], lanes[l]);
      }
    }
    warps.push_back(warp_welford(lanes, combine));
  }
  return combine(combine(warps[0], warps[2]), combine(warps[1], warps[3]));
}
welford single_moments(const floats& x) {
  std::vector<welford> warps(32);
  for (std::size_t w = 0; w < 16; ++w) {
    std::vector<welford> lanes(32);
    for (std::size_t l = 0; l < 32; ++l) {
      for (std::size_t i = 32 * w + l; i < x.size(); i += 512) {
        lanes[l] = online_single(x[i], lanes[l]);
      }
    }
    warps[w] = warp_welford(lanes, combine_singles);
  }
  return warp_welford(warps, combine_singles);
}

/// vectorized_layer_norm_kernel() or LayerNormForwardCUDAKernel() for one element.
float normal(float x, float mean, float rstd, const float* weight, const float* bias, bool vectors,
             bool first_of_vector) {
  const float z = rstd * (x - mean);
  if (!vectors) {
    const float h = bias == nullptr ? 0.0f : *bias;
    return weight == nullptr ? std::fma(x - mean, rstd, h) : std::fma(*weight, z, h);
  }
  if (weight == nullptr && bias != nullptr) {
    return first_of_vector ? z + *bias : std::fma(x - mean, rstd, *bias);
  }
  if (weight == nullptr) return z;
  return bias == nullptr ? *weight * z : std::fma(*weight, z, *bias);
}

void compare_layer_norm(format_id format, std::int64_t n, std::int64_t shift, bool has_weight,
                        bool has_bias) {
  const row x = random_row(format, n, 29 + static_cast<std::uint64_t>(n), 2);
  const row weight = random_row(format, n, 31), bias = random_row(format, n, 37);
  const floats v = numbers(x), g = numbers(weight), h = numbers(bias);
  const bool vectors = n % 4 == 0 && shift % 4 == 0;
  const welford m = vectors ? vector_moments(v) : single_moments(v);
  const float epsilon = 0.001f, rstd = rsqrtf_of(m.squares / static_cast<float>(n) + epsilon);
  floats y;
  for (std::size_t i = 0; i < v.size(); ++i) {
    y.push_back(normal(v[i], m.mean, rstd, has_weight ? &g[i] : nullptr, has_bias ? &h[i] : nullptr,
                       vectors, i % 4 == 0));
  }
  row got = guarded(x);
  const torch::row_statistics s = torch::layer_norm_row(
      got.data(), n, {has_weight ? weight.data() : nullptr, has_bias ? bias.data() : nullptr},
      bits(epsilon), torch::has_vectors_of_4(n, shift));
  EXPECT_EQ(s.mean, bits(m.mean)) << n;
  EXPECT_EQ(s.rstd, bits(rstd)) << n;
  expect_equal(y, got, "layer_norm", format, shift);
}

/// The same kernels of RMSNorm: cuRMSOnlineSum(), or WelfordOps.
void compare_rms_norm(format_id format, std::int64_t n, std::int64_t shift, bool has_weight) {
  const row x = random_row(format, n, 53 + static_cast<std::uint64_t>(n), 2);
  const row weight = random_row(format, n, 59);
  const floats v = numbers(x);
  const bool vectors = n % 4 == 0 && shift % 4 == 0;
  const float epsilon = 0.001f, count = static_cast<float>(n);
  float rstd = 0;
  if (vectors) {
    floats sums(128, 0.0f);
    for (std::size_t i = 0; i < v.size(); ++i) {
      float& sum = sums[i / 4 % 128];
      sum = std::fma(v[i], v[i], sum);
    }
    rstd = rsqrtf_of(block_sum(sums) / count + epsilon);
  } else {
    const welford m = single_moments(v);
    rstd = rsqrtf_of(std::fma(m.mean, m.mean, m.squares / count) + epsilon);
  }
  floats y;
  for (std::size_t i = 0; i < v.size(); ++i) {
    y.push_back(has_weight ? number(weight[i]) * (rstd * v[i]) : rstd * v[i]);
  }
  row got = guarded(x);
  EXPECT_EQ(torch::rms_norm_row(got.data(), n, has_weight ? weight.data() : nullptr, bits(epsilon),
                                torch::has_vectors_of_4(n, shift)),
            bits(rstd))
      << n;
  expect_equal(y, got, "rms_norm", format, shift);
}

void compare_layer_norm_gradient(format_id format, std::int64_t n, bool has_weight,
                                 bool rms = false) {
  const row x = random_row(format, n, 41 + static_cast<std::uint64_t>(n), 2);
  const row grad = random_row(format, n, 43), weight = random_row(format, n, 47, 1);
  const floats v = numbers(x), dy = numbers(grad);
  const floats g = has_weight ? numbers(weight) : floats(v.size(), 1.0f);
  const float mean = rms ? 0.0f : 1.7f, rstd = 0.3f, count = static_cast<float>(n);
  floats sums(128, 0.0f), products(128, 0.0f), dx;
  for (std::size_t t = 0; t < 128; ++t) {
    for (std::size_t l = 4 * t; l < v.size(); l += 512) {
      for (std::size_t i = l; i < std::min(l + 4, v.size()); ++i) {
        const float p = dy[i] * g[i];
        sums[t] += p;
        products[t] = std::fma(p * (v[i] - mean), rstd, products[t]);
      }
    }
  }
  const float sum = rms ? 0.0f : block_sum(sums), product = block_sum(products);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const float z = (v[i] - mean) * rstd, own = count * g[i];
    dx.push_back((std::fma(own, dy[i], -(z * product)) - sum) * (1 / count * rstd));
  }
  row got = guarded(grad);
  const torch::row_statistics statistics = {bits(mean), bits(rstd)};
  const std::uint32_t* const weights = has_weight ? weight.data() : nullptr;
  const row padded = guarded(x);
  if (rms) {
    torch::layer_norm_gradient_row(padded.data(), statistics, weights, got.data(), n, true);
  } else {
    torch::layer_norm_gradient_row(padded.data(), statistics, weights, got.data(), n);
  }
  expect_equal(dx, got, "gradient of layer_norm", format, 0);
}

TEST(LayerNorm, ComputesThePyTorchKernels) {
  for (const std::int64_t n : {1,   2,   3,   4,   5,   8,    100,  127,  128,  508,  509,
                               511, 512, 513, 516, 520, 1000, 1021, 1028, 4096, 4099, 12288}) {
    for (const std::int64_t shift : {0, 1, 4}) {
      for (const int affine : {0, 1, 2, 3}) {
        compare_layer_norm(format_id::fp32, n, shift, affine % 2 != 0, affine / 2 != 0);
      }
    }
    compare_layer_norm(format_id::bf16, n, 0, true, true);
    compare_layer_norm_gradient(format_id::fp32, n, true);
    compare_layer_norm_gradient(format_id::fp16, n, false);
    compare_layer_norm_gradient(format_id::bf16, n, true, true);
    for (const std::int64_t shift : {0, 1}) {
      compare_rms_norm(format_id::fp32, n, shift, n % 3 == 0);
      compare_rms_norm(format_id::bf16, n, shift, true);
    }
  }
}

TEST(LayerNorm, ZerosHaveTheMeanZero) {
  const row zeros(12, 0u);
  for (const bool vectors : {false, true}) {
    EXPECT_EQ(torch::row_moments(zeros.data(), 12, vectors).mean, 0u) << vectors;
  }
}

TEST(LayerNorm, CountsToTwoToThe24) {
  EXPECT_TRUE(torch::has_vectors_of_4(1 << 24, 0));
  EXPECT_FALSE(torch::has_vectors_of_4((1 << 24) + 4, 0));
  EXPECT_FALSE(torch::has_vectors_of_4(8, 2));
  EXPECT_FALSE(torch::has_vectors_of_4(6, 0));
}

}  // namespace
}  // namespace samebits
