// Quantization of small matrices worked out by hand: shapes, tails, statistics alone, nothing. Rules
// and policies are worked by hand for the oracle, in tests/oracle/quantize_test.cpp, and backends
// have its results in engine.quantize_oracle.
#include "samebits/quantize.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

const float nan = std::bit_cast<float>(0x7FC00000u);

struct result {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  quantize_statistics statistics;
};

result quantize_rows(std::vector<float> x, std::int64_t rows, const quantize_options& options) {
  const auto cols = static_cast<std::int64_t>(x.size()) / rows;
  const matrix_shape shape = scales_shape(rows, cols, options.tile);
  result r;
  // By every backend: all alike, and without statistics too, which may take another way.
  for (const std::string& backend : support::supported_backends()) {
    for (const bool counts : {true, false}) {
      result one;
      one.codes.resize(x.size());
      one.scales.resize(static_cast<std::size_t>(shape.rows * shape.cols));
      quantize(view_of(x.data(), rows, cols),
               {.codes = view_of_codes(format_id::e4m3, one.codes.data(), rows, cols),
                .scales = view_of(one.scales.data(), shape.rows, shape.cols),
                .statistics = counts ? &one.statistics : nullptr},
               options, {backend, 1, nullptr});
      if (r.codes.empty()) r = one;
      if (counts) {
        EXPECT_EQ(one.statistics, r.statistics) << backend;
      }
      EXPECT_EQ(one.codes, r.codes) << backend;
      EXPECT_EQ(std::memcmp(one.scales.data(), r.scales.data(), r.scales.size() * sizeof(float)), 0)
          << backend;
    }
  }
  return r;
}

using codes = std::vector<std::uint8_t>;
using floats = std::vector<float>;

TEST(Quantize, ShapesOfScales) {
  const auto is = [](std::int64_t rows, std::int64_t cols, tile_shape tile, matrix_shape expected) {
    return scales_shape(rows, cols, tile) == expected;
  };
  EXPECT_TRUE(is(7, 300, {1, 128}, {7, 3}));
  EXPECT_TRUE(is(7, 256, {1, 128}, {7, 2}));
  EXPECT_TRUE(is(257, 300, {128, 128}, {3, 3}));
  EXPECT_TRUE(is(17, 3, {16, 1}, {2, 3}));
  EXPECT_TRUE(is(7, 300, {1, 0}, {7, 1}));
  EXPECT_TRUE(is(7, 300, {0, 1}, {1, 300}));
  EXPECT_TRUE(is(7, 300, {0, 0}, {1, 1}));
  EXPECT_TRUE(is(0, 300, {0, 0}, {0, 1}));
  EXPECT_TRUE(is(7, 0, {1, 128}, {7, 0}));
  EXPECT_TRUE(is(0, 0, {256, 256}, {0, 0}));
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  EXPECT_TRUE(is(huge, 1, {16, 1}, {huge / 16, 1}));
  EXPECT_TRUE(is(std::numeric_limits<std::int64_t>::max(), 1, {256, 256}, {huge / 128, 1}));
}

TEST(Quantize, TilesAndTails) {
  // 2 rows of 17: tiles 0..15 and the tail 16. amax 896 has scale 2, amax 448 scale 1.
  floats x(34, 0.0f);
  x[0] = 896;
  x[1] = -2;
  x[16] = 448;
  x[17] = 448;
  x[33] = -896;
  const result r = quantize_rows(x, 2, {.tile = {1, 16}, .scale = scale_rule::div});
  EXPECT_EQ(r.scales, (floats{2, 1, 1, 2}));
  EXPECT_EQ(r.codes[0], 0x7E);
  EXPECT_EQ(r.codes[1], 0xB8);
  EXPECT_EQ(r.codes[16], 0x7E);
  EXPECT_EQ(r.codes[17], 0x7E);
  EXPECT_EQ(r.codes[33], 0xFE);
  EXPECT_EQ(quantize_rows(x, 2, {.tile = {0, 0}}).scales, (floats{2}));
  EXPECT_EQ(quantize_rows(x, 2, {.tile = {1, 0}}).scales, (floats{2, 2}));
  EXPECT_EQ(quantize_rows(x, 2, {.tile = {16, 16}}).scales, (floats{2, 2}));
  const floats columns = quantize_rows(x, 2, {.tile = {0, 1}}).scales;
  EXPECT_EQ(columns[0], 2);
  EXPECT_EQ(columns[15], 1);  // a tile of zeros
  EXPECT_EQ(columns[16], 2);
}

TEST(Quantize, NothingLeftHasScaleOneWhateverEpsIs) {
  for (const nonfinite policy : {nonfinite::te, nonfinite::skip_nonfinite}) {
    const result r = quantize_rows({nan, nan}, 1, {.eps = 896.0f, .nonfinite = policy});
    EXPECT_EQ(r.scales, floats{1});
    EXPECT_EQ(r.codes, (codes{0x7F, 0x7F}));
  }
}

TEST(Quantize, StatisticsAlone) {
  constexpr std::int64_t rows = 37, cols = 261;  // three chunks of sums
  floats x;
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    x.push_back(std::ldexp(static_cast<float>(i * 7 % 97 - 48), static_cast<int>(i % 23) - 20));
  }
  const const_matrix_view in = view_of(x.data(), rows, cols);
  for (const std::string& backend : support::supported_backends()) {
    for (const tile_shape tile : {tile_shape{1, 32}, {32, 32}, {16, 1}, {0, 0}}) {
      codes all(x.size());
      quantize_statistics with_codes, alone;
      const quantize_options options = {
          .tile = tile, .upper_bound = 0.5f, .rounding = rounding::stochastic};
      quantize(in,
               {.codes = view_of_codes(format_id::e5m2, all.data(), rows, cols),
                .statistics = &with_codes},
               options, {backend, 1, nullptr});
      quantize(in, {.codes = {.format = format_id::e5m2}, .statistics = &alone}, options,
               {backend, 2, nullptr});
      EXPECT_EQ(alone, with_codes) << backend;
      EXPECT_GT(alone.saturated, 0u);
    }
    quantize_statistics s;
    EXPECT_THROW(quantize(in, {.statistics = &s}, {}, {backend, 1, nullptr}), invalid_argument);
    // Memory for codes that is missing is no request for statistics alone.
    const matrix_view no_memory =
        view_of_codes(format_id::e5m2, static_cast<void*>(nullptr), rows, cols);
    EXPECT_THROW(quantize(in, {.codes = no_memory, .statistics = &s}, {}, {backend, 1, nullptr}),
                 invalid_argument);
    EXPECT_THROW(quantize(in, {.codes = {.format = format_id::e5m2}}, {}, {backend, 1, nullptr}),
                 invalid_argument);
  }
}

TEST(Quantize, EmptyMatrices) {
  for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 5}, {5, 0}}) {
    quantize_statistics s;
    s.elements = 7;
    const const_matrix_view in =
        view_of_codes(format_id::bf16, static_cast<const void*>(nullptr), rows, cols);
    quantize(in, {.statistics = &s});
    EXPECT_EQ(s, quantize_statistics{});
    quantize(in, {});
    EXPECT_EQ(quantize_workspace(in, {}), 0u);
  }
  dequantize(view_of_codes(format_id::e4m3, static_cast<const void*>(nullptr), 0, 5),
             view_of_codes(format_id::fp32, static_cast<const void*>(nullptr), 0, 1),
             view_of_codes(format_id::bf16, static_cast<void*>(nullptr), 0, 5), {1, 128});
}

}  // namespace
}  // namespace samebits
