// Functions of rows with Inf, NaN, equal numbers and zeros: every host backend against the reference
// backend.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/row_matrix.hpp"
#include "samebits/row_functions.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

using support::matrix, support::random_matrix;

/// Seven rows: usual numbers, large ones, equal ones, zeros of both signs, one Inf, one NaN, and
/// -Inf with one number.
matrix special_rows(format_id format, std::int64_t cols, std::uint64_t seed) {
  constexpr std::uint32_t inf = 0x7F800000, minus = 0x80000000, two = 0x40000000;
  matrix x = random_matrix(format, cols, 1, seed);
  const std::int64_t at = static_cast<std::int64_t>(seed) * 7 % cols;
  for (std::int64_t c = 0; c < cols; ++c) {
    x.set(1, c, x.get(1, c) + (4u << 23));
    x.set(2, c, two);
    x.set(3, c, x.get(3, c) & minus);
    x.set(6, c, minus | inf);
  }
  x.set(4, at, inf);
  x.set(5, at, 0x7FC00000);
  x.set(6, at, two);
  return x;
}
constexpr std::int64_t special_count = 7;

/// The results of all functions on special rows, one after another.
std::vector<std::uint8_t> results_of(format_id format, std::int64_t cols, std::int64_t offset,
                                     const executor& where) {
  matrix x = special_rows(format, cols, 11), grad = special_rows(format, cols, 12);
  matrix weight = random_matrix(format, cols, 1, 13), bias = random_matrix(format, cols, 1, 14);
  matrix mean(format_id::fp32, 1, 1), rstd(format_id::fp32, 1, 1);
  std::vector<std::uint8_t> bytes;
  const auto keep = [&](const auto& call) {
    matrix y(format, cols, 1);
    call(y.view(special_count));
    for (const matrix* m : {&y, &mean, &rstd}) {
      bytes.insert(bytes.end(), m->bytes.begin(), m->bytes.end());
    }
  };
  const auto in = x.view(special_count), g = grad.view(special_count);
  const auto m = mean.view(special_count), s = rstd.view(special_count);
  const softmax_options of_torch{.rule = function_rule::torch_2_11, .offset = offset};
  const softmax_options of_triton{.rule = function_rule::triton_3_6, .num_warps = 8};
  const layer_norm_options norm{.rule = function_rule::torch_2_11, .offset = offset};
  keep([&](const matrix_view& y) { softmax(in, y, of_torch, where); });
  keep([&](const matrix_view& y) { softmax(in, y, of_triton, where); });
  keep([&](const matrix_view& y) { log_softmax(in, y, of_torch, where); });
  keep([&](const matrix_view& y) { softmax_gradient(g, in, y, of_torch, where); });
  keep([&](const matrix_view& y) { log_softmax_gradient(g, in, y, of_torch, where); });
  for (const bool has_weight : {false, true}) {
    for (const bool has_bias : {false, true}) {
      const const_matrix_view w = has_weight ? weight.view(1) : matrix_view{};
      const const_matrix_view b = has_bias ? bias.view(1) : matrix_view{};
      keep([&](const matrix_view& y) { layer_norm(in, w, b, y, m, s, norm, where); });
      keep([&](const matrix_view& y) { layer_norm_gradient(g, in, m, s, w, y, norm, where); });
    }
  }
  return bytes;
}

class SpecialRows : public ::testing::TestWithParam<std::string> {};

/// Every width to 40, and widths at which the order of the sums changes.
TEST_P(SpecialRows, HaveTheReferencesBits) {
  if (GetParam() == "reference") GTEST_SKIP() << "compared with itself";
  std::vector<std::int64_t> widths{96,   100,  128,  250,  512,   1020,  1024,  1025, 2048,
                                   2050, 4096, 9216, 9217, 12000, 12264, 12288, 16003};
  for (std::int64_t n = 1; n <= 40; ++n) widths.push_back(n);
  for (const format_id format : {format_id::fp32, format_id::fp16, format_id::bf16}) {
    if (format == format_id::bf16) widths.insert(widths.end(), {24504, 24536, 24552});
    for (const std::int64_t cols : widths) {
      for (const std::int64_t offset : {0, 3}) {
        if (offset != 0 && cols > 40 && cols % 2 == 0) continue;
        ASSERT_TRUE(results_of(format, cols, offset, {GetParam(), 3}) ==
                    results_of(format, cols, offset, {"reference", 0}))
            << name(format) << " " << cols << " offset " << offset;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SpecialRows, ::testing::ValuesIn(support::supported_backends()),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace samebits
