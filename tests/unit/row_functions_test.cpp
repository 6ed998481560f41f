// Softmax, log_softmax and their gradients by torch_2_11 at widths around the borders between kernels.
// The sums are those of a program that has PyTorch's kernels thread by thread in the processor's floats
// and shares no code with the library. python.training_functions and, on a GPU,
// test_functional.py compare with PyTorch.
#include <gtest/gtest.h>

#include <cstdint>

#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "unit/torch_rows.hpp"

namespace samebits {
namespace {

using namespace torch_rows;

/// Adds softmax and log_softmax of a row.
void add_results(word_sum& sum, format_id format, std::int64_t n, std::int64_t shift) {
  const row x = guarded(random_row(format, n, 17 + static_cast<std::uint64_t>(n)));
  row y = x, z = x;
  torch::softmax_row(torch::softmax_order(format, n, shift), y.data(), n);
  torch::log_softmax_row(torch::softmax_order(format, n, shift), z.data(), n);
  sum.add(y);
  sum.add(z);
}

/// Adds the gradients of softmax and log_softmax of a row.
void add_gradients(word_sum& sum, format_id format, std::int64_t n, std::int64_t shift) {
  const row grad = guarded(random_row(format, n, 19 + static_cast<std::uint64_t>(n), 1));
  const row result = random_row(format, n, 23 + static_cast<std::uint64_t>(n), -3);
  const torch::row_order order = torch::softmax_gradient_order(format, n, shift);
  row y = grad, z = grad;
  torch::softmax_gradient_row(order, format, result.data(), y.data(), n);
  torch::log_softmax_gradient_row(order, result.data(), z.data(), n);
  sum.add(y);
  sum.add(z);
}

/// Widths around every border between kernels, of fp32 and of 16 bits.
constexpr std::int64_t softmax_widths[] = {
    1,     2,     3,     5,     16,    31,    32,    33,    100,   1023,  1024,  1025,  1028,
    1032,  1040,  2047,  2048,  2049,  2055,  2056,  2064,  4100,  4112,  8191,  8192,  8200,
    9215,  9216,  9217,  9220,  9224,  12252, 12255, 12256, 12260, 12264, 12268, 12272, 12276,
    12288, 16384, 16392, 20001, 24504, 24512, 24520, 24536, 24544, 24552, 24576, 32770};

/// Rows of one format and offset, and the sums of their results. bf16 has fp16's orders and is tested
/// on narrow rows.
struct row_series {
  format_id format;
  std::int64_t shift;
  bool (*has)(std::int64_t n);
  std::uint64_t results, gradients;
};
const row_series expected[] = {
    {format_id::fp32, 0, [](std::int64_t n) { return n <= 20001; }, 0x2B9A291A4E0C0E35,
     0xAA4020FC91A799FD},
    {format_id::fp16, 0, [](std::int64_t n) { return n <= 10000 || n >= 16384; },
     0xC2752F0EECBC6CE4, 0x80154F25BB90EC8C},
    {format_id::bf16, 0, [](std::int64_t n) { return n <= 1100; }, 0xE8E3446B6EBF09BD,
     0xDC88E36A6B4D5F78},
    {format_id::fp32, 3, [](std::int64_t n) { return n % 5 <= 1; }, 0x7EB6646B1AF5D387,
     0x5AA25A03B32B925A},
    {format_id::fp16, 7, [](std::int64_t n) { return n % 7 <= 1; }, 0x0402A121A80D5F2A,
     0xE2DB34C051FD3366},
};

// A number that every step would change, and larger than all in the row: `guarded` has one that a subtraction
// leaves as it is.
TEST(RowFunctions, DoNotTouchTheNumberBehindARow) {
  const std::uint32_t behind = bits(1234.5F);
  for (const std::int64_t n : {1, 33, 1028}) {
    const torch::row_order order = torch::softmax_order(format_id::fp32, n, 0);
    row y = random_row(format_id::fp32, n, 29);
    y.push_back(behind);
    row z = y;
    torch::softmax_row(order, y.data(), n);
    torch::log_softmax_row(order, z.data(), n);
    EXPECT_EQ(y.back(), behind) << n;
    EXPECT_EQ(z.back(), behind) << n;
  }
}

// Sums of threads that have no element are zeros: in other rows a tiny number instead of them would be rounded away.
TEST(RowFunctions, GradientsOfZerosAreZeros) {
  for (const std::int64_t n : softmax_widths) {
    const row result(static_cast<std::size_t>(n), bits(1));
    row grad(result.size());
    torch::softmax_gradient_row(torch::softmax_gradient_order(format_id::fp32, n, 0),
                                format_id::fp32, result.data(), grad.data(), n);
    EXPECT_EQ(grad, row(grad.size())) << n;
  }
}

TEST(RowFunctions, HaveTheSumsOfPyTorchsKernels) {
  for (const row_series& e : expected) {
    word_sum results, gradients;
    for (const std::int64_t n : softmax_widths) {
      if (!e.has(n)) continue;
      // Rows that one warp adds begin at a boundary.
      if (e.shift == 0 || n > 9216) add_results(results, e.format, n, e.shift);
      if (e.shift == 0 || n > 1024) add_gradients(gradients, e.format, n, e.shift);
    }
    EXPECT_EQ(results.value(), e.results) << name(e.format) << " from " << e.shift;
    EXPECT_EQ(gradients.value(), e.gradients) << name(e.format) << " from " << e.shift;
  }
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
