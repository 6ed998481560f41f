// Functions of rows by torch_2_11: PyTorch's kernels written thread by thread, with the processor's
// floats, against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits {
namespace {

namespace torch = numerics::torch_2_11;
using row = std::vector<std::uint32_t>;
using floats = std::vector<float>;

float number(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits(float x) {
  return std::isnan(x) ? numerics::binary32::nan : std::bit_cast<std::uint32_t>(x);
}
float expf_of(float x) { return number(numerics::cuda_13_0::exp(bits(x))); }
float logf_of(float x) { return number(numerics::cuda_13_0::log(bits(x))); }
float rsqrtf_of(float x) { return number(numerics::cuda_13_0::rsqrt(bits(x))); }
float stored(format_id format, float x) { return number(torch::stored(format, bits(x))); }
floats numbers(const row& x) {
  floats y;
  for (const std::uint32_t code : x) y.push_back(number(code));
  return y;
}

/// Numbers of a format near `centre`, pseudo-random.
row random_row(format_id format, std::int64_t n, std::uint64_t seed, float centre = 0) {
  row x;
  for (std::int64_t i = 0; i < n; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const float uniform = static_cast<float>(seed >> 40) * 0x1p-23f - 1;
    x.push_back(bits(stored(format, centre + 8 * uniform * uniform * uniform)));
  }
  return x;
}

// PyTorch's kernels. `data` points to n elements, `sums` has one sum per thread.

/// WARP_SHFL_DOWN within one warp: lane 0 is the result.
float warp_sum(floats lanes) {
  for (std::size_t offset = 16; offset > 0; offset /= 2) {
    const floats before = lanes;
    for (std::size_t l = 0; l < 32; ++l) {
      lanes[l] = before[l] + before[l + offset < 32 ? l + offset : l];
    }
  }
  return lanes[0];
}
float block_sum(const floats& sums) {
  floats of_warps(32, 0.0f);
  for (std::size_t w = 0; w < sums.size() / 32; ++w) {
    of_warps[w] = warp_sum(floats(sums.begin() + static_cast<std::ptrdiff_t>(32 * w),
                                  sums.begin() + static_cast<std::ptrdiff_t>(32 * w + 32)));
  }
  return warp_sum(of_warps);
}
float sequential_sum(const floats& sums) {
  float total = 0;
  for (std::size_t w = 0; w < sums.size() / 32; ++w) {
    float sum = 0;
    for (std::size_t i = 0; i < 32; ++i) sum += sums[32 * w + i];
    total += sum;
  }
  return total;
}

/// One warp, exchanged by xor.
template <class Term>
float persistent_sum(std::int64_t n, const Term& term) {
  int power = 1;
  while (power < n) power *= 2;
  const int lanes = std::min(power, 32);
  floats sums(static_cast<std::size_t>(lanes), 0.0f);
  for (int l = 0; l < lanes; ++l) {
    for (std::int64_t i = l; i < n; i += lanes) sums[static_cast<std::size_t>(l)] += term(i);
  }
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    const floats before = sums;
    for (int l = 0; l < lanes; ++l) {
      sums[static_cast<std::size_t>(l)] += before[static_cast<std::size_t>(l ^ offset)];
    }
  }
  return sums[0];
}

template <class Term>
floats thread_sums_of_vectors(std::int64_t n, int threads, int vector, const Term& term) {
  floats sums(static_cast<std::size_t>(threads), 0.0f);
  for (int t = 0; t < threads; ++t) {
    for (std::int64_t offset = t; offset * vector < n; offset += threads) {
      for (int j = 0; j < vector && offset * vector + j < n; ++j) {
        sums[static_cast<std::size_t>(t)] += term(offset * vector + j);
      }
    }
  }
  return sums;
}

/// ilpReduce of SoftMax.cu.
template <class Term>
floats thread_sums_between_borders(std::int64_t n, std::int64_t shift, int threads, int vector,
                                   const Term& term) {
  floats sums(static_cast<std::size_t>(threads), 0.0f);
  for (int t = 0; t < threads; ++t) {
    float& sum = sums[static_cast<std::size_t>(t)];
    std::int64_t data = 0, size = n;
    if (shift > 0) {
      data -= shift;
      size += shift;
      if (t >= shift && t < size) sum += term(data + t);
      size -= threads > size ? size : threads;
      data += threads;
    }
    const std::int64_t last = size % (std::int64_t{vector} * threads);
    for (std::int64_t offset = t; offset * vector < size - last; offset += threads) {
      for (int j = 0; j < vector; ++j) sum += term(data + offset * vector + j);
    }
    for (std::int64_t offset = size - last + t; offset < size; offset += threads) {
      sum += term(data + offset);
    }
  }
  return sums;
}

/// host_softmax(): the choice of a kernel, and its sum.
template <class Term>
float forward_sum(format_id format, std::int64_t n, std::int64_t shift, const Term& term) {
  if (n <= 2048) return persistent_sum(n, term);
  const int bytes = format == format_id::fp32 ? 4 : 2, vector = 16 / bytes;
  if ((n + 1023) / 1024 < 10) return block_sum(thread_sums_of_vectors(n, 1024, 1, term));
  if (n < (49152 - 128) / bytes && shift == 0 && n % vector == 0) {
    return block_sum(thread_sums_of_vectors(n, 1024, vector, term));
  }
  return block_sum(thread_sums_between_borders(n, shift, 1024, vector, term));
}

/// host_softmax_backward()
template <class Term>
float backward_sum(format_id format, std::int64_t n, std::int64_t shift, const Term& term) {
  if (n <= 1024) return persistent_sum(n, term);
  const int bytes = format == format_id::fp32 ? 4 : 2, vector = 16 / bytes;
  int threads = 1;
  while (threads < std::min<std::int64_t>(n / vector, 1024) / 2) threads *= 2;
  threads = std::max(threads, 32);
  if (n < (49152 - threads / 32 * 4) / bytes && shift == 0 && n % vector == 0) {
    return block_sum(thread_sums_of_vectors(n, threads, vector, term));
  }
  return sequential_sum(thread_sums_between_borders(n, shift, threads, vector, term));
}

constexpr std::uint32_t behind_the_row = 0x60123456;  // large: it would change every sum
row guarded(row x) {
  x.push_back(behind_the_row);
  return x;
}

/// Compares a row that guarded() made.
void expect_equal(const floats& expected, row got, const char* what, format_id format,
                  std::int64_t shift) {
  ASSERT_EQ(got.back(), behind_the_row) << what;
  got.pop_back();
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(bits(expected[i]), got[i])
        << what << " " << name(format) << " n " << got.size() << " shift " << shift << " at " << i;
  }
}

void compare_softmax(format_id format, std::int64_t n, std::int64_t shift) {
  const row x = random_row(format, n, 17 + static_cast<std::uint64_t>(n));
  const floats v = numbers(x);
  const float max = *std::max_element(v.begin(), v.end());
  const auto term = [&](std::int64_t i) { return expf_of(v[static_cast<std::size_t>(i)] - max); };
  const float sum = forward_sum(format, n, shift, term);
  floats y, z;
  for (const float e : v) {
    y.push_back(expf_of(e - max) / sum);
    z.push_back((e - max) - logf_of(sum));
  }
  row got = guarded(x);
  torch::softmax_row(torch::softmax_order(format, n, shift), got.data(), n);
  expect_equal(y, got, "softmax", format, shift);
  got = guarded(x);
  torch::log_softmax_row(torch::softmax_order(format, n, shift), got.data(), n);
  expect_equal(z, got, "log_softmax", format, shift);
}

void compare_gradients(format_id format, std::int64_t n, std::int64_t shift) {
  const row grad = random_row(format, n, 19 + static_cast<std::uint64_t>(n), 1);
  const row result = random_row(format, n, 23 + static_cast<std::uint64_t>(n), -3);
  const floats g = numbers(grad), y = numbers(result);
  floats product, from_softmax, from_log;
  for (std::size_t i = 0; i < g.size(); ++i) product.push_back(stored(format, g[i] * y[i]));
  const auto at = [](const floats& v) {
    return [&v](std::int64_t i) { return v[static_cast<std::size_t>(i)]; };
  };
  const float sum = backward_sum(format, n, shift, at(product));
  const float sum_of_grad = backward_sum(format, n, shift, at(g));
  for (std::size_t i = 0; i < g.size(); ++i) {
    from_softmax.push_back(std::fma(-y[i], sum, product[i]));
    from_log.push_back(std::fma(-expf_of(y[i]), sum_of_grad, g[i]));
  }
  row got = guarded(grad);
  torch::softmax_gradient_row(torch::softmax_gradient_order(format, n, shift), format,
                              result.data(), got.data(), n);
  expect_equal(from_softmax, got, "gradient of softmax", format, shift);
  got = guarded(grad);
  torch::log_softmax_gradient_row(torch::softmax_gradient_order(format, n, shift), result.data(),
                                  got.data(), n);
  expect_equal(from_log, got, "gradient of log_softmax", format, shift);
}

/// Widths around every border between kernels, of fp32 and of 16 bits.
constexpr std::int64_t softmax_widths[] = {
    1,     2,     3,     5,     16,    31,    32,    33,    100,   1023,  1024,  1025,  1028,
    1032,  1040,  2047,  2048,  2049,  2055,  2056,  2064,  4100,  4112,  8191,  8192,  8200,
    9215,  9216,  9217,  9220,  9224,  12252, 12255, 12256, 12260, 12264, 12268, 12272, 12276,
    12288, 16384, 16392, 20001, 24504, 24512, 24520, 24536, 24544, 24552, 24576, 32770};

/// Calls compare(format, n, shift) for every width; rows that begin between two boundaries only
/// above `one_warp`. bf16 has fp16's orders and is tested on narrow rows.
void for_each_width(std::int64_t one_warp,
                    const std::function<void(format_id, std::int64_t, std::int64_t)>& compare) {
  for (const std::int64_t n : softmax_widths) {
    if (n <= 20001) compare(format_id::fp32, n, 0);
    if (n <= 10000 || n >= 16384) compare(format_id::fp16, n, 0);
    if (n <= 1100) compare(format_id::bf16, n, 0);
    if (n > one_warp && n % 5 <= 1) compare(format_id::fp32, n, 3);
    if (n > one_warp && n % 7 <= 1) compare(format_id::fp16, n, 7);
  }
}

TEST(RowFunctions, SoftmaxAddsInTheOrderOfPyTorchsKernels) {
  for_each_width(9216, compare_softmax);
}

TEST(RowFunctions, GradientsAddInTheOrderOfPyTorchsKernels) {
  for_each_width(1024, compare_gradients);
}

/// A head that is longer than the row: only a kernel for few threads would show it.
TEST(RowFunctions, AShortRowEndsWithinItsHead) {
  const torch::row_order order = torch::vector_order(20, 3, 32, 4, torch::thread_sums::sequential);
  EXPECT_EQ(order.head, 20);
  EXPECT_EQ(order.body, 0);
  EXPECT_EQ(order.thread_of(19), 22);
}

TEST(RowFunctions, NonfiniteRowsGiveNaN) {
  constexpr std::uint32_t inf = 0x7F800000, minus_inf = 0xFF800000, nan = 0xFFC00001;
  for (const row& x : {row{0, inf, 0}, row{0, nan, 0}, row{minus_inf, minus_inf, minus_inf}}) {
    row y = x, z = x;
    torch::softmax_row(torch::warp_order(3), y.data(), 3);
    torch::log_softmax_row(torch::warp_order(3), z.data(), 3);
    for (const row& got : {y, z}) EXPECT_EQ(got, row(3, 0x7FFFFFFF));
  }
  row one = {minus_inf, 0x40000000, minus_inf};
  torch::softmax_row(torch::warp_order(3), one.data(), 3);
  EXPECT_EQ(one, (row{0, 0x3F800000, 0}));
}

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

void compare_layer_norm_gradient(format_id format, std::int64_t n, bool has_weight) {
  const row x = random_row(format, n, 41 + static_cast<std::uint64_t>(n), 2);
  const row grad = random_row(format, n, 43), weight = random_row(format, n, 47, 1);
  const floats v = numbers(x), dy = numbers(grad);
  const floats g = has_weight ? numbers(weight) : floats(v.size(), 1.0f);
  const float mean = 1.7f, rstd = 0.3f, count = static_cast<float>(n);
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
  const float sum = block_sum(sums), product = block_sum(products);
  for (std::size_t i = 0; i < v.size(); ++i) {
    const float z = (v[i] - mean) * rstd, own = count * g[i];
    dx.push_back((std::fma(own, dy[i], -(z * product)) - sum) * (1 / count * rstd));
  }
  row got = guarded(grad);
  torch::layer_norm_gradient_row(guarded(x).data(), {bits(mean), bits(rstd)},
                                 has_weight ? weight.data() : nullptr, got.data(), n);
  expect_equal(dx, got, "gradient of layer_norm", format, 0);
}

TEST(RowFunctions, LayerNormComputesThePyTorchKernels) {
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
  }
}

TEST(RowFunctions, LayerNormCountsToTwoToThe24) {
  EXPECT_TRUE(torch::has_vectors_of_4(1 << 24, 0));
  EXPECT_FALSE(torch::has_vectors_of_4((1 << 24) + 4, 0));
  EXPECT_FALSE(torch::has_vectors_of_4(8, 2));
  EXPECT_FALSE(torch::has_vectors_of_4(6, 0));
}

}  // namespace
}  // namespace samebits
