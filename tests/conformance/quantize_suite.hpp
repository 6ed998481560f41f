// The conformance suite of quantization: what every executor must do, bit for bit as the definition
// in numerics/ does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Host, QuantizeSuite, ::testing::ValuesIn(host_quantizers()),
//                            name_of_quantizer);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "conformance/quantize_fixture.hpp"
#include "samebits/quantize.hpp"
#include "samebits/scalar.hpp"
#include "support/effort.hpp"

namespace samebits::support {

TEST_P(QuantizeSuite, EveryOption) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr tile_shape tiles[] = {{1, 16}, {16, 16}, {16, 1}, {1, 0}, {0, 1}, {0, 0}};
  constexpr float bounds[][2] = {{0, inf}, {0.25f, inf}, {0, 2}, {0x1p-140f, 0x1p-130f}, {4, 1}};
  constexpr std::array<std::size_t, 7> counts = {3,
                                                 2,
                                                 enum_count<scale_rule>,
                                                 enum_count<nonfinite>,
                                                 2,
                                                 enum_count<overflow>,
                                                 enum_count<nan_policy>};
  constexpr const char* names[] = {"source",   "target",   "rule",      "non-finite policy",
                                   "rounding", "overflow", "NaN policy"};
  std::size_t combinations = 3;  // half of the tiles for each, others each time
  for (const std::size_t count : counts) combinations *= count;
  thinned_cases cases(13);
  for (std::size_t i = 0; i < combinations; ++i) {
    if (cases.leaves_out()) continue;
    std::array<std::size_t, counts.size()> at = {};
    std::size_t rest = i / 3;
    draws.begin();
    for (std::size_t d = 0; d < counts.size(); ++d) {
      at[d] = rest % counts[d];
      rest /= counts[d];
      draws.fix(names[d], at[d], counts[d]);
    }
    const tile_shape& tile = tiles[draws.draw("tile", std::size(tiles))];
    const auto& bound = bounds[draws.draw("bounds", std::size(bounds))];
    const auto scale_policy =
        draws.draw_as<scale_overflow>("scale overflow", enum_count<scale_overflow>);
    const int bits = 1 + static_cast<int>(draws.draw("bits", 32));
    quantize_case c =
        dense(sources[at[0]], targets[at[1]], 18, 67,
              {tile, static_cast<scale_rule>(at[2]), bound[0], bound[1],
               static_cast<nonfinite>(at[3]), modes[at[4]], static_cast<overflow>(at[5]),
               static_cast<nan_policy>(at[6]), stream_of(bits)});
    c.options.scale_overflow = scale_policy;
    c.content = number++;
    expect_conforms(c);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST_P(QuantizeSuite, EveryTileWithTails) {
  const std::vector<tile_shape> tiles = all_tiles();
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const tile_shape& tile = tiles[t];
    const std::int64_t g = std::max<std::int64_t>(16, std::max(tile.rows, tile.cols));
    const std::int64_t h = tile.rows == 0 ? 17 : tile.rows;  // 0: all rows are one tile
    const std::int64_t heights[] = {1, h, h + 1, std::max<std::int64_t>(2, 2 * h - 1)};
    const std::int64_t widths[] = {1, g - 1, g, g + 1, 2 * g + 17, 4 * g};
    for (std::size_t row = 0; row < std::size(heights); ++row) {
      for (std::size_t col = 0; col < std::size(widths); ++col) {
        draws.begin();
        draws.fix("tile", t, tiles.size());
        draws.fix("rows", row, std::size(heights));
        draws.fix("columns", col, std::size(widths));
        expect_conforms(random_case(heights[row], widths[col], tile, 16));
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST_P(QuantizeSuite, WideRowsCrossBlocks) {
  constexpr tile_shape tiles[] = {{1, 16}, {1, 128}, {1, 0}, {16, 16}, {64, 1}, {0, 1}};
  constexpr std::int64_t widths[] = {1023, 4097, 8192, 16411, 33000};
  for (std::size_t t = 0; t < std::size(tiles); ++t) {
    for (std::size_t i = 0; i < 2 * std::size(widths); ++i) {
      draws.begin();
      draws.fix("tile", t, std::size(tiles));
      expect_conforms(random_case(tiles[t].rows == 1 ? 2 : 5, widths[i / 2], tiles[t], 8));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(QuantizeSuite, StridedAndUnalignedViews) {
  constexpr std::int64_t rows = 19;
  constexpr std::int64_t cols = 83;
  const auto layouts = [](std::int64_t r, std::int64_t k) {
    return std::vector<array_layout>{{r, k, k, 1, 0},      {r, k, k + 5, 1, 1},
                                     {r, k, k + 64, 1, 7}, {r, k, 3 * k, 3, 0},
                                     {r, k, 1, r, 0},      {r, k, 2, 2 * r + 1, 3}};
  };
  std::vector<array_layout> readable = layouts(rows, cols);
  readable.insert(readable.end(), {{rows, cols, 0, 1, 0}, {rows, cols, 1, 0, 0}});
  const std::vector<array_layout> writable = layouts(rows, cols);
  constexpr tile_shape tiles[] = {{1, 16}, {16, 16}, {16, 1}, {1, 0}, {0, 1}, {0, 0}};
  for (std::size_t t = 0; t < std::size(tiles); ++t) {
    const matrix_shape scales = scales_shape(rows, cols, tiles[t]);
    for (std::size_t in = 0; in < readable.size(); ++in) {
      for (std::size_t codes = 0; codes < writable.size(); ++codes) {
        draws.begin();
        draws.fix("tile", t, std::size(tiles));
        draws.fix("input", in, readable.size());
        draws.fix("codes", codes, writable.size());
        const std::size_t scales_layout = draws.draw("scales", writable.size());
        const std::size_t transposed_layout = draws.draw("transposed scales", writable.size());
        quantize_case c = random_case(rows, cols, tiles[t], 13);
        c.in = readable[in];
        c.codes = writable[codes];
        c.scales = layouts(scales.rows, scales.cols)[scales_layout];
        c.scales_transposed = layouts(scales.cols, scales.rows)[transposed_layout];
        const bool everything = draws.draw("outputs", 2) == 0;
        expect_conforms(c, everything ? wanted::all
                                      : wanted::codes | wanted::scales | wanted::scales_transposed);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST_P(QuantizeSuite, AnySubsetOfOutputs) {
  constexpr tile_shape tiles[] = {{1, 32}, {32, 32}, {32, 1}, {1, 0}, {0, 1}, {0, 0}};
  for (std::size_t t = 0; t < std::size(tiles); ++t) {
    for (unsigned i = 0; i < 2 * wanted::all; ++i) {
      const unsigned mask = 1 + i / 2;
      if ((mask & (wanted::codes | wanted::codes_transposed)) == 0) continue;
      draws.begin();
      draws.fix("tile", t, std::size(tiles));
      expect_conforms(random_case(35, 71, tiles[t], 32), mask);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST_P(QuantizeSuite, RandomBitsFollowOffsetPitchAndWidth) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  constexpr tile_shape tiles[] = {{1, 16}, {16, 16}, {16, 1}, {0, 0}};
  constexpr int widths[] = {1, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32};
  const random_stream streams[] = {{0, 0, 0, std::nullopt, 0},
                                   {1, top, 5, 1000, 0},
                                   {top, 1, top - 40, std::nullopt, 0},
                                   {std::uint64_t{1} << 32, std::uint64_t{1} << 32, 3, 0, 0},
                                   {7, 8, (std::uint64_t{1} << 32) - 30, top - 2, 0}};
  for (std::size_t t = 0; t < std::size(tiles); ++t) {
    for (std::size_t w = 0; w < std::size(widths); ++w) {
      for (std::size_t s = 0; s < std::size(streams); ++s) {
        draws.begin();
        draws.fix("tile", t, std::size(tiles));
        draws.fix("bits", w, std::size(widths));
        draws.fix("stream", s, std::size(streams));
        quantize_case c = random_case(5, 133, tiles[t], widths[w], rounding::stochastic);
        c.options.random = streams[s];
        c.options.random.bits = widths[w];
        expect_conforms(c);
        if (HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST_P(QuantizeSuite, Threads) {
  constexpr tile_shape tiles[] = {{1, 128}, {128, 128}, {128, 1}, {1, 0}, {0, 1}, {0, 0}};
  constexpr std::int64_t shapes[][2] = {{1, 140001}, {20011, 7}, {271, 517}};
  constexpr int threads[] = {0, 3, 8};
  for (const tile_shape& tile : tiles) {
    for (const auto& [rows, cols] : shapes) {
      for (std::size_t t = 0; t < std::size(threads); ++t) {
        draws.begin();
        draws.fix("threads", t, std::size(threads));
        const bool everything = draws.draw("outputs", 3) == 0;
        quantize_case c = random_case(rows, cols, tile, 16);
        c.threads = threads[t];
        expect_conforms(c, everything ? wanted::all : wanted::codes | wanted::scales);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(QuantizeSuite, EmptyMatricesAndSetFlagsWriteNothing) {
  const std::uint32_t set = 0x80000000u;
  for (const tile_shape& tile : all_tiles()) {
    for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 7}, {7, 0}}) {
      expect_conforms(dense(format_id::fp32, format_id::e4m3, rows, cols, {.tile = tile}));
      if (HasFatalFailure()) return;
    }
    for (const unsigned mask :
         {wanted::codes | wanted::scales, wanted::all & ~wanted::statistics, wanted::all}) {
      quantize_case c = dense(format_id::fp32, format_id::e4m3, 5, 70, {.tile = tile});
      c.options.skip_if_nonzero = &set;
      strided_buffer in = filled(c);
      quantize_result got(c);
      if (!target_quantizes(c, in, outputs_of(got, mask))) continue;
      const quantize_result untouched(c);
      EXPECT_EQ(got.codes.bytes(), untouched.codes.bytes());
      EXPECT_EQ(got.scales.bytes(), untouched.scales.bytes());
      EXPECT_EQ(got.statistics, untouched.statistics);
    }
  }
}

// One element per tile, so that any of the 2^31 amaxes is a case.
TEST_P(QuantizeSuite, ScalesOfAmaxesFromZeroToNaN) {
  constexpr std::uint32_t step = 14983 * static_cast<std::uint32_t>(effort_divisor);
  constexpr std::int64_t cols = 0x80000000u / step;
  std::uint32_t first = 0;
  for (const format_id to : targets) {
    for (int rule = 0; rule < enum_count<scale_rule>; ++rule) {
      for (int policy = 0; policy < enum_count<nonfinite>; ++policy) {
        const quantize_case c = dense(format_id::fp32, to, 1, cols,
                                      {.tile = {0, 1},
                                       .scale = static_cast<scale_rule>(rule),
                                       .nonfinite = static_cast<nonfinite>(policy)});
        strided_buffer in(format_id::fp32, c.in);
        first += 611;
        for (std::int64_t i = 0; i < cols; ++i) {
          in.store(i, first + static_cast<std::uint32_t>(i) * step);
        }
        quantize_result got(c), expected(c);
        constexpr unsigned mask = wanted::codes | wanted::scales;
        if (!target_quantizes(c, in, outputs_of(got, mask))) continue;
        define_quantization(c, in, outputs_of(expected, mask));
        ASSERT_EQ(first_difference("scale", got.scales, expected.scales, c.scales), "") << c;
        ASSERT_EQ(first_difference("code", got.codes, expected.codes, c.codes), "") << c;
      }
    }
  }
}

// An Inf makes a tile's scale 1 under most policies. Then nothing bounds the tile's other elements,
// which may lie in another part of the work.
TEST_P(QuantizeSuite, LargeElementsFarFromAnInfOfTheirTile) {
  constexpr tile_shape tiles[] = {{1, 0}, {0, 1}, {0, 0}};
  const auto expect = [&](std::int64_t rows, std::int64_t cols, const quantize_options& options,
                          format_id from, format_id to, int threads) {
    quantize_case c = dense(from, to, rows, cols, options);
    c.threads = threads;
    strided_buffer in(from, c.in);
    const auto store = [&](std::int64_t row, std::int64_t col, float value) {
      in.store(row * cols + col,
               convert_code(format_id::fp32, from, std::bit_cast<std::uint32_t>(value),
                            {.overflow = overflow::ieee})
                   .code);
    };
    for (std::int64_t i = 0; i < rows * cols; ++i) store(i / cols, i % cols, 1.0f);
    for (std::int64_t row = 0; row < rows; row += 2) {
      store(row, 5, std::numeric_limits<float>::infinity());
      store(row, cols - 1, 60000.0f);  // above the largest e4m3 and e5m2
      store(row + 1, cols - 140, from == format_id::fp16 ? -65504.0f : -1e38f);
    }
    quantize_result got(c), expected(c);
    if (!target_quantizes(c, in, outputs_of(got, wanted::all & ~wanted::statistics))) return;
    define_quantization(c, in, outputs_of(expected, wanted::all & ~wanted::statistics));
    ASSERT_EQ(first_difference("scale", got.scales, expected.scales, c.scales), "") << c;
    ASSERT_EQ(first_difference("code", got.codes, expected.codes, c.codes), "") << c;
    ASSERT_EQ(first_difference("transposed code", got.codes_transposed, expected.codes_transposed,
                               c.codes_transposed),
              "")
        << c;
  };
  for (const tile_shape& tile : tiles) {
    for (const format_id from : sources) {
      for (int i = 0; i < enum_count<scale_rule> * enum_count<nonfinite> * enum_count<overflow>;
           ++i) {
        const quantize_options options{
            .tile = tile,
            .scale = static_cast<scale_rule>(i % enum_count<scale_rule>),
            .nonfinite = static_cast<nonfinite>(i / enum_count<scale_rule> % enum_count<nonfinite>),
            .overflow = static_cast<overflow>(i / enum_count<scale_rule> / enum_count<nonfinite>)};
        expect(2, 400, options, from, targets[i % 2], 1);
        if (HasFatalFailure()) return;
        expect(2, 400, options, from, targets[1 - i % 2], 1);
        if (HasFatalFailure()) return;
      }
    }
    expect(2, 40'000, {.tile = tile, .overflow = overflow::ieee}, format_id::fp32, format_id::e5m2,
           3);
    if (HasFatalFailure()) return;
  }
}

// Backends may treat matrices that do not fit caches in another way
// (backends/simd/lanes/access.hpp). The parts that they are compared with fit, and have the same
// scales by eps where a tile is the whole.
TEST_P(QuantizeSuite, MatricesLargerThanCaches) {
  const std::int64_t rows = by_effort(1024 / (effort_divisor > 1 ? 4 : 1), 512);
  constexpr std::int64_t cols = 12000 + 77;
  for (const tile_shape& tile : {tile_shape{1, 128}, {128, 128}, {128, 1}, {0, 0}}) {
    draws.begin();
    quantize_case c = random_case(rows, cols, tile, 16);
    if (tile.rows == 0) c.options.eps = 0x1p127f;
    c.options.nonfinite = nonfinite::skip_nonfinite;
    c.codes.misalignment = 3;
    c.codes.row_stride += 9;
    strided_buffer in = filled(c);
    quantize_result whole(c), parts(c);
    const quantize_outputs outputs = outputs_of(parts, wanted::codes | wanted::scales);
    if (!target_quantizes(c, in, outputs_of(whole, wanted::codes | wanted::scales))) continue;
    for (std::int64_t row = 0; row < rows; row += 256) {
      const std::int64_t scale_row = tile.rows == 0 ? 0 : row / tile.rows;
      quantize_options options = c.options;
      options.random.offset += static_cast<std::uint64_t>(row * cols);
      const matrix_shape scales = scales_shape(256, cols, tile);
      GetParam().quantize(rows_of(in.view(), row, 256),
                          {.codes = rows_of(outputs.codes, row, 256),
                           .scales = rows_of(outputs.scales, scale_row, scales.rows)},
                          options, 1);
    }
    ASSERT_TRUE(whole.codes.bytes() == parts.codes.bytes()) << c;
    ASSERT_TRUE(whole.scales.bytes() == parts.scales.bytes()) << c;
  }
}

}  // namespace samebits::support
