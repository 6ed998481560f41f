// Quantization of small matrices worked out by hand: tiles, policies, edges, statistics.
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
#include "samebits/scalar.hpp"
#include "support/backends.hpp"

namespace samebits {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan = std::bit_cast<float>(0x7FC00000u);
const float negative_nan = std::bit_cast<float>(0xFFC00001u);

struct result {
  std::vector<std::uint8_t> codes;
  std::vector<float> scales;
  quantize_statistics statistics;
};

result quantize_rows(std::vector<float> x, std::int64_t rows, const quantize_options& options,
                     format_id to = format_id::e4m3) {
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
               {.codes = view_of_codes(to, one.codes.data(), rows, cols),
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

TEST(Quantize, RulesDifferInTheLastBitsOfScalesAndInCodes) {
  // 448 / 0.3 and its reciprocal are not 0.3 / 448; bits from exact arithmetic.
  const auto scale_bits = [](scale_rule rule, float a) {
    const result r = quantize_rows({a}, 1, {.scale = rule});
    return std::bit_cast<std::uint32_t>(r.scales[0]);
  };
  int differ = 0;
  for (int i = 1; i < 1000; ++i) {
    const float a = static_cast<float>(i) / 7.0f;
    EXPECT_EQ(scale_bits(scale_rule::div, a), scale_bits(scale_rule::rcp, a));
    differ += scale_bits(scale_rule::te, a) != scale_bits(scale_rule::div, a) ? 1 : 0;
  }
  EXPECT_GT(differ, 200);  // 26 % of all amaxes
  EXPECT_LT(differ, 320);
  EXPECT_EQ(quantize_rows({3.0f}, 1, {.scale = scale_rule::pow2}).scales[0], 0x1p-7f);
}

TEST(Quantize, ZeroTileKeepsItsSigns) {
  for (int m = 0; m < enum_count<scale_rule>; ++m) {
    const auto rule = static_cast<scale_rule>(m);
    const result r = quantize_rows({0.0f, -0.0f}, 1, {.scale = rule});
    EXPECT_EQ(r.codes, (codes{0x00, 0x80}));
    EXPECT_EQ(r.scales, floats{1});
    EXPECT_EQ(r.statistics.zeros, 2u);
    EXPECT_EQ(r.statistics.min_nonzero, 0.0f);
  }
  // With eps the tile is no zero tile any more.
  EXPECT_EQ(quantize_rows({0.0f}, 1, {.eps = 896.0f}).scales, floats{2});
}

TEST(Quantize, NonFinitePolicies) {
  const floats x = {nan, 896, -inf, 1, negative_nan};
  const auto with = [&](nonfinite policy, overflow o = overflow::saturate) {
    return quantize_rows(x, 1, {.scale = scale_rule::div, .nonfinite = policy, .overflow = o});
  };
  const result te = with(nonfinite::te);
  EXPECT_EQ(te.scales, floats{1});
  EXPECT_EQ(te.codes, (codes{0x7F, 0x7E, 0xFE, 0x38, 0x7F}));
  EXPECT_EQ(te.statistics.nan, 2u);
  EXPECT_EQ(te.statistics.inf, 1u);
  EXPECT_EQ(te.statistics.saturated, 1u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(te.statistics.amax), 0x7FFFFFFFu);
  const result skip = with(nonfinite::skip_nonfinite);
  EXPECT_EQ(skip.scales, floats{2});
  EXPECT_EQ(skip.codes, (codes{0x7F, 0x7E, 0xFE, 0x30, 0x7F}));
  EXPECT_EQ(skip.statistics.saturated, 0u);
  EXPECT_EQ(with(nonfinite::skip_nonfinite, overflow::ieee).codes[2], 0x7F);
  const result all = with(nonfinite::propagate);
  EXPECT_TRUE(std::isnan(all.scales[0]));
  EXPECT_EQ(all.codes, (codes{0x7F, 0x7F, 0x7F, 0x7F, 0x7F}));
  EXPECT_EQ(all.statistics.signal, 0.0);  // no pair is finite on both sides
}

TEST(Quantize, PropagatedInfinityLeavesZerosAndNaN) {
  const floats x = {inf, 5, -5};
  for (const scale_rule rule : {scale_rule::te, scale_rule::div, scale_rule::rcp}) {
    const result r = quantize_rows(x, 1, {.scale = rule, .nonfinite = nonfinite::propagate});
    EXPECT_EQ(r.scales, floats{inf});
    EXPECT_EQ(r.codes, (codes{0x7F, 0x00, 0x80}));
    EXPECT_EQ(r.statistics.underflowed, 2u);
  }
}

TEST(Quantize, NothingLeftHasScaleOneWhateverEpsIs) {
  for (const nonfinite policy : {nonfinite::te, nonfinite::skip_nonfinite}) {
    const result r = quantize_rows({nan, nan}, 1, {.eps = 896.0f, .nonfinite = policy});
    EXPECT_EQ(r.scales, floats{1});
    EXPECT_EQ(r.codes, (codes{0x7F, 0x7F}));
  }
}

TEST(Quantize, SignsOfNaN) {
  // x * S is the canonical NaN already; only a NaN of the cast itself can keep a sign.
  const result r = quantize_rows({negative_nan, nan, 448}, 1, {.nan = nan_policy::preserve_sign});
  EXPECT_EQ(r.codes, (codes{0x7F, 0x7F, 0x7E}));
  const result beyond = quantize_rows(
      {-1000, 448}, 1,
      {.upper_bound = 448, .overflow = overflow::ieee, .nan = nan_policy::preserve_sign});
  EXPECT_EQ(beyond.codes, (codes{0xFF, 0x7E}));
}

TEST(Quantize, TinyTiles) {
  // te stores the reciprocal of FLT_MAX, a subnormal; the others stop at 2^-126.
  const float tiny = 0x1p-149f;
  const result te = quantize_rows({tiny}, 1, {});
  EXPECT_EQ(std::bit_cast<std::uint32_t>(te.scales[0]), 0x00200000u);
  EXPECT_EQ(te.codes, codes{0x00});  // 2^-149 * FLT_MAX = 2^-21: below half of 2^-9
  EXPECT_EQ(te.statistics.underflowed, 1u);
  for (const scale_rule rule : {scale_rule::div, scale_rule::rcp, scale_rule::pow2}) {
    EXPECT_EQ(quantize_rows({tiny}, 1, {.scale = rule}).scales, floats{0x1p-126f});
  }
}

TEST(Quantize, BytesOfMxScales) {
  // Tiles: zeros, 1 (exponent 0 - 8), -480 beside NaN, Inf alone.
  floats x(64, 0.0f);
  x[1] = -0.0f;
  x[16] = 1;
  x[32] = -480;
  x[33] = nan;
  x[48] = inf;
  const auto with = [&](nonfinite policy) {
    std::vector<std::uint8_t> bytes(4);
    codes c(64);
    quantize(view_of_codes(format_id::fp32, static_cast<const float*>(x.data()), 1, 64),
             {.codes = view_of_codes(format_id::e4m3, c.data(), 1, 64),
              .scales = view_of_codes(format_id::e8m0, bytes.data(), 1, 4)},
             {.tile = {1, 16}, .scale = scale_rule::mx_floor, .nonfinite = policy});
    EXPECT_EQ(c[1], 0x80);
    EXPECT_EQ(c[16], 0x78);  // 256
    floats back(64);
    dequantize(view_of_codes(format_id::e4m3, static_cast<const std::uint8_t*>(c.data()), 1, 64),
               view_of_codes(format_id::e8m0, static_cast<const std::uint8_t*>(bytes.data()), 1, 4),
               view_of_codes(format_id::fp32, back.data(), 1, 64), {1, 16});
    EXPECT_EQ(std::bit_cast<std::uint32_t>(back[1]), 0x80000000u);
    EXPECT_EQ(back[16], 1.0f);
    EXPECT_EQ(std::isnan(back[32]), bytes[2] == 0xFF);
    return bytes;
  };
  EXPECT_EQ(with(nonfinite::te), (std::vector<std::uint8_t>{0x00, 0x77, 0x7F, 0x7F}));
  EXPECT_EQ(with(nonfinite::skip_nan), (std::vector<std::uint8_t>{0x00, 0x77, 0x7F, 0xFE}));
  EXPECT_EQ(with(nonfinite::propagate), (std::vector<std::uint8_t>{0x00, 0x77, 0xFF, 0xFF}));
}

TEST(Quantize, GivenInverseScales) {
  // S = 2 and 3: the scale is 1 / S, whatever the elements are; 448 saturates.
  const floats x = {1, 448, -0.0f, 1};
  const floats given = {2, 3};
  codes c(4);
  floats scales(2);
  quantize(view_of_codes(format_id::fp32, static_cast<const float*>(x.data()), 2, 2),
           {.codes = view_of_codes(format_id::e4m3, c.data(), 2, 2),
            .scales = view_of_codes(format_id::fp32, scales.data(), 2, 1)},
           {.tile = {1, 16},
            .scale = scale_rule::div,
            .eps = 1000,
            .inverse_scales = view_of_codes(format_id::fp32, given.data(), 2, 1)});
  EXPECT_EQ(c, (codes{0x40, 0x7E, 0x80, 0x44}));
  EXPECT_EQ(scales, (floats{0.5f, 1.0f / 3.0f}));
}

TEST(Quantize, SaturatedCountsWhatTheUpperBoundCutsOff) {
  const floats x = {448, 464, 465, -1000, inf, 0x1p127f};
  const result r =
      quantize_rows(x, 1, {.upper_bound = 448, .nonfinite = nonfinite::skip_nonfinite});
  EXPECT_EQ(r.codes, (codes{0x7E, 0x7E, 0x7E, 0xFE, 0x7E, 0x7E}));
  EXPECT_EQ(r.statistics.saturated, 3u);  // the tie 464 is rounded to 448
  const result e5m2 =
      quantize_rows({57344, 61439, 61440, -1e30f}, 1, {.upper_bound = 57344}, format_id::e5m2);
  EXPECT_EQ(e5m2.codes, (codes{0x7B, 0x7B, 0x7B, 0xFB}));
  EXPECT_EQ(e5m2.statistics.saturated, 2u);
  // A product that overflows binary32 saturates too.
  const result beyond = quantize_rows({1e30f, 1e-30f}, 1, {.upper_bound = 1e-30f});
  EXPECT_EQ(beyond.codes, (codes{0x7E, 0x7E}));
  EXPECT_EQ(beyond.statistics.saturated, 1u);
}

TEST(Quantize, EnergyIsExact) {
  // 448 fixes scale 1; 17 lies between 16 and 18 and goes to even, 16: noise 1.
  const result r = quantize_rows({448, 17, -3}, 1, {});
  EXPECT_EQ(r.statistics.noise, 1.0);
  EXPECT_EQ(r.statistics.signal, 448.0 * 448 + 17 * 17 + 9);
  EXPECT_EQ(r.statistics.min_nonzero, 3.0f);
  EXPECT_EQ(r.statistics.amax, 448.0f);
  EXPECT_EQ(quantize_rows({-inf, 3}, 1, {}).statistics.amax, inf);
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

TEST(Quantize, SkipFlag) {
  const std::uint32_t set = 1, clear = 0;
  EXPECT_EQ(quantize_rows({448}, 1, {.skip_if_nonzero = &clear}).codes, codes{0x7E});
  const result r = quantize_rows({448}, 1, {.skip_if_nonzero = &set});
  EXPECT_EQ(r.codes, codes{0x00});
  EXPECT_EQ(r.scales, floats{0});
  EXPECT_EQ(r.statistics.elements, 0u);
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

TEST(Dequantize, RoundsTwice) {
  const std::vector<std::uint8_t> q = {0x7E, 0xB8, 0x7F, 0x80};
  const auto bits_of = [&](format_id to, float scale) {
    std::vector<std::uint32_t> bits;
    std::vector<std::uint16_t> narrow(q.size());
    const auto codes_view = view_of_codes(format_id::e4m3, q.data(), 1, 4);
    dequantize(codes_view, view_of(&scale, 1, 1), view_of_codes(to, narrow.data(), 1, 4), {1, 128});
    bits.assign(narrow.begin(), narrow.end());
    return bits;
  };
  EXPECT_EQ(bits_of(format_id::bf16, 1.0f),
            (std::vector<std::uint32_t>{0x43E0, 0xBF80, 0x7FFF, 0x8000}));
  // 448 * 256 overflows fp16.
  EXPECT_EQ(bits_of(format_id::fp16, 256.0f),
            (std::vector<std::uint32_t>{0x7C00, 0xDC00, 0x7FFF, 0x8000}));
  std::vector<float> wide(4);
  const float third = 1.0f / 3.0f;
  dequantize(view_of_codes(format_id::e4m3, q.data(), 1, 4), view_of(&third, 1, 1), view_of(wide),
             {1, 128});
  volatile float factor = third;
  EXPECT_EQ(wide[0], 448.0f * factor);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[2]), 0x7FFFFFFFu);
}

}  // namespace
}  // namespace samebits
