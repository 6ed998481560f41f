// Softmax, log_softmax and their gradients by torch_2_11: PyTorch's kernels written thread by
// thread, with the processor's floats, against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>

#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;

float expf_of(float x) { return number(numerics::cuda_13_0::exp(bits(x))); }
float logf_of(float x) { return number(numerics::cuda_13_0::log(bits(x))); }

// PyTorch's kernels. `data` points to n elements, `sums` has one sum per thread.

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

}  // namespace
}  // namespace samebits
