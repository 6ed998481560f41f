// The suite of quantization: what every executor must do, bit for bit as the definition in numerics/
// does it (contract §10.3). Include it in one file per program and instantiate:
//
//   INSTANTIATE_TEST_SUITE_P(Host, QuantizeSuite, ::testing::ValuesIn(host_suite_targets()),
//                            name_of_suite_target);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "engine/core/sweeps.hpp"
#include "engine/definition.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "engine/suites/suite_target.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"

namespace samebits::support {

class QuantizeSuite : public ::testing::TestWithParam<suite_target> {
 protected:
  void SetUp() override { target_ = GetParam().make(); }
  /// Makes the calls of cases and compares all memory with what the judge leaves there.
  void expect_conforms(std::vector<quantize_case> cases, std::size_t step = 1,
                       std::size_t batch = 1024,
                       const array_target& judge = function_target<quantize_case>(
                           "the definition", quantize_by_definition)) {
    expect_same(
        listed_operation("quantize", quantizations(), thinned(std::move(cases), step), batch),
        *target_, judge, 0);
  }

  /// A case of dense matrices.
  static quantize_case dense(format_id from, format_id to, std::int64_t rows, std::int64_t cols,
                             const quantize_options& options) {
    quantize_case c{.from = from, .to = to, .options = options, .plain = true};
    lay_out(c, rows, cols, [] { return std::uint64_t{1}; });
    return c;
  }

  /// A dense case of the test's next number. What the test does not fix itself is chosen evenly.
  quantize_case next_case(std::int64_t rows, std::int64_t cols, const tile_shape& tile) {
    const format_id from = even_one_of(draws, "source", sources);
    const format_id to = even_one_of(draws, "target", targets);
    quantize_options o{.tile = tile};
    o.scale = static_cast<scale_rule>(draws.draw("rule", one_level_scale_rules));
    o.nonfinite = even_enumerator<nonfinite>(draws, "non-finite policy");
    o.rounding = even_one_of(draws, "rounding", modes);
    o.overflow = even_enumerator<overflow>(draws, "overflow");
    o.nan = even_enumerator<nan_policy>(draws, "NaN policy");
    o.scale_overflow = even_enumerator<scale_overflow>(draws, "scale overflow");
    o.random = {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, 16};
    quantize_case c = dense(from, to, rows, cols, o);
    c.content = number++;
    return c;
  }

  even_draw draws;
  std::uint64_t number = 0;  ///< of cases so far

  static std::vector<tile_shape> all_tiles() {
    std::vector<tile_shape> tiles = {{1, 0}, {0, 1}, {0, 0}};
    for (const std::int64_t g : {16, 32, 64, 128, 256}) {
      tiles.insert(tiles.end(), {{1, g}, {g, 1}, {g, g}});
    }
    return tiles;
  }
  static constexpr format_id sources[] = {format_id::fp32, format_id::bf16, format_id::fp16};
  static constexpr format_id targets[] = {format_id::e4m3, format_id::e5m2, format_id::e2m1};
  static constexpr rounding modes[] = {rounding::nearest_even, rounding::stochastic};
  static constexpr wanted_outputs everything = {true, true, true, true, true};

  std::unique_ptr<array_target> target_;
};

TEST_P(QuantizeSuite, EveryOption) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr tile_shape tiles[] = {{1, 16}, {16, 16}, {16, 1}, {1, 0}, {0, 1}, {0, 0}};
  constexpr float bounds[][2] = {{0, inf}, {0.25f, inf}, {0, 2}, {0x1p-140f, 0x1p-130f}, {4, 1}};
  constexpr std::size_t counts[] = {
      3, std::size(targets),   one_level_scale_rules, enum_count<nonfinite>,
      2, enum_count<overflow>, enum_count<nan_policy>};
  constexpr const char* names[] = {"source",   "target",   "rule",      "non-finite policy",
                                   "rounding", "overflow", "NaN policy"};
  std::size_t combinations = 3;  // half of the tiles for each, others each time
  for (const std::size_t count : counts) combinations *= count;
  std::vector<quantize_case> cases;
  for (std::size_t i = 0; i < combinations; ++i) {
    std::size_t at[std::size(counts)] = {};
    std::size_t rest = i / 3;
    draws.begin();
    for (std::size_t d = 0; d < std::size(counts); ++d) {
      at[d] = rest % counts[d];
      rest /= counts[d];
      draws.fix(names[d], at[d], counts[d]);
    }
    const tile_shape& tile = tiles[draws.draw("tile", std::size(tiles))];
    const auto& bound = bounds[draws.draw("bounds", std::size(bounds))];
    const auto scale_policy = even_enumerator<scale_overflow>(draws, "scale overflow");
    const int bits = 1 + static_cast<int>(draws.draw("bits", 32));
    cases.push_back(dense(sources[at[0]], targets[at[1]], 18, 67,
                          {tile,
                           static_cast<scale_rule>(at[2]),
                           bound[0],
                           bound[1],
                           static_cast<nonfinite>(at[3]),
                           modes[at[4]],
                           static_cast<overflow>(at[5]),
                           static_cast<nan_policy>(at[6]),
                           {7, 3, 1000, std::nullopt, bits}}));
    cases.back().options.scale_overflow = scale_policy;
    cases.back().content = number++;
  }
  EXPECT_EQ(draws.missing(), "");
  expect_conforms(std::move(cases), 13);
}

TEST_P(QuantizeSuite, EveryTwoOptions) {
  const std::vector<tile_shape> tiles = all_tiles();
  std::vector<quantize_case> cases;
  for (int i = 0; i < 4000; ++i) {
    draws.begin();
    const tile_shape tile = even_one_of(draws, "tile", tiles);
    const std::int64_t g = std::max<std::int64_t>(16, std::max(tile.rows, tile.cols));
    const std::int64_t h = tile.rows == 0 ? 17 : tile.rows;  // 0: all rows are one tile
    const std::int64_t heights[] = {1, 19, h, h + 1, std::max<std::int64_t>(2, 2 * h - 1)};
    const std::int64_t widths[] = {1, 83, g - 1, g, g + 1, 2 * g + 17, 4 * g};
    std::int64_t rows = even_one_of(draws, "rows", heights);
    const std::int64_t cols = even_one_of(draws, "columns", widths);
    if (rows * cols > 60'000) rows = 1 + rows % 40;
    quantize_case c = next_case(rows, cols, tile);
    c.options.random = even_stream(draws);
    const auto lay = [&](const char* which, array_layout& l, array_side side) {
      l = even_layout(draws, which, l.rows, l.cols, side);
    };
    lay("in", c.in, array_side::read);
    lay("codes", c.codes, array_side::written);
    lay("scales", c.scales, array_side::written);
    lay("codes_transposed", c.codes_transposed, array_side::written);
    lay("scales_transposed", c.scales_transposed, array_side::written);
    const auto mask = 1 + draws.draw("outputs", 31);
    c.wanted = {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0, (mask & 8) != 0, mask > 15};
    if (!c.wanted.codes && !c.wanted.codes_transposed) c.wanted = everything;
    constexpr int threads[] = {1, 0, 3, 8};
    c.threads = even_one_of(draws, "threads", threads);
    cases.push_back(c);
  }
  EXPECT_EQ(draws.missing(), "");
  expect_conforms(std::move(cases), 13);
}

TEST_P(QuantizeSuite, EveryTileWithTails) {
  const std::vector<tile_shape> tiles = all_tiles();
  std::vector<quantize_case> cases;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    const tile_shape& tile = tiles[t];
    const std::int64_t g = std::max<std::int64_t>(16, std::max(tile.rows, tile.cols));
    const std::int64_t h = tile.rows == 0 ? 17 : tile.rows;
    for (const std::int64_t rows :
         {std::int64_t{1}, h, h + 1, std::max<std::int64_t>(2, 2 * h - 1)}) {
      for (const std::int64_t cols : {std::int64_t{1}, g - 1, g, g + 1, 2 * g + 17, 4 * g}) {
        draws.begin();
        draws.fix("tile", t, tiles.size());
        cases.push_back(next_case(rows, cols, tile));
      }
    }
  }
  EXPECT_EQ(draws.missing(), "");
  expect_conforms(std::move(cases));
}

TEST_P(QuantizeSuite, LargeMatrices) {
  constexpr tile_shape tiles[] = {{1, 16},  {1, 128}, {1, 0}, {16, 16}, {128, 128},
                                  {128, 1}, {64, 1},  {0, 1}, {0, 0}};
  constexpr matrix_shape shapes[] = {{2, 1023},  {5, 4097},   {2, 8192},  {5, 16411},
                                     {2, 33000}, {1, 140001}, {20011, 7}, {271, 517}};
  std::vector<quantize_case> cases;
  for (std::size_t t = 0; t < std::size(tiles); ++t) {
    for (std::size_t s = 0; s < std::size(shapes); ++s) {
      draws.begin();
      draws.fix("tile", t, std::size(tiles));
      quantize_case c = next_case(shapes[s].rows, shapes[s].cols, tiles[t]);
      constexpr int threads[] = {1, 0, 3, 8};
      c.threads = even_one_of(draws, "threads", threads);
      if (draws.draw("outputs", 3) == 0) c.wanted = everything;
      cases.push_back(c);
    }
  }
  expect_conforms(std::move(cases), 1, 16);
}

TEST_P(QuantizeSuite, EmptyMatricesAndSetFlagsWriteNothing) {
  std::vector<quantize_case> cases;
  for (const tile_shape& tile : all_tiles()) {
    for (const auto& [rows, cols] : {std::pair{0, 0}, {0, 7}, {7, 0}}) {
      cases.push_back(dense(format_id::fp32, format_id::e4m3, rows, cols, {.tile = tile}));
    }
    for (const wanted_outputs& wanted :
         {wanted_outputs{}, wanted_outputs{true, true, true, true, false}, everything}) {
      for (const std::uint32_t flag : {1u, 2u, 0x80000000u}) {
        cases.push_back(dense(format_id::fp32, format_id::e4m3, 5, 70, {.tile = tile}));
        cases.back().wanted = wanted;
        cases.back().skip = flag;
      }
    }
  }
  expect_conforms(std::move(cases));
}

// One element per tile, so that any of the 2^31 amaxes is a case.
TEST_P(QuantizeSuite, ScalesOfAmaxesFromZeroToNaN) {
  constexpr std::int64_t cols = 0x80000000u / amax_step / effort_divisor;
  std::vector<quantize_case> cases;
  for (const auto& [to, rule, policy] :
       combinations(targets, one_level_rules(), enumerators<nonfinite>())) {
    cases.push_back(
        dense(format_id::fp32, to, 1, cols, {.tile = {0, 1}, .scale = rule, .nonfinite = policy}));
    cases.back().kind = matrix_content::amaxes;
    cases.back().content = 611 * cases.size();
  }
  expect_conforms(std::move(cases), 1, 16);
}

TEST_P(QuantizeSuite, LargeElementsFarFromAnInfOfTheirTile) {
  std::vector<quantize_case> cases;
  const auto add = [&](std::int64_t cols, const quantize_options& options, format_id from,
                       format_id to, int threads) {
    // Backends may quantize in one pass if no transposed codes are wanted.
    for (const bool transposed : {false, true}) {
      cases.push_back(dense(from, to, 2, cols, options));
      cases.back().kind = matrix_content::large_beside_inf;
      cases.back().wanted = {true, true, transposed, transposed, false};
      cases.back().threads = threads;
    }
  };
  for (const tile_shape& tile : {tile_shape{1, 0}, {0, 1}, {0, 0}}) {
    for (const auto& [from, rule, policy, beyond, to] :
         combinations(sources, one_level_rules(), enumerators<nonfinite>(), enumerators<overflow>(),
                      targets)) {
      add(400, {.tile = tile, .scale = rule, .nonfinite = policy, .overflow = beyond}, from, to, 1);
    }
    add(40'000, {.tile = tile, .overflow = overflow::ieee}, format_id::fp32, format_id::e5m2, 3);
  }
  expect_conforms(std::move(cases));
}

// Backends may treat matrices that do not fit caches in another way
// (backends/simd/lanes/access.hpp). The parts that they are compared with fit, and have the same
// scales by eps where a tile is the whole.
TEST_P(QuantizeSuite, MatricesLargerThanCaches) {
  constexpr std::int64_t part = 256;
  const std::int64_t rows = by_effort(1024 / (effort_divisor > 1 ? 4 : 1), 512);
  constexpr std::int64_t cols = 12000 + 77;
  std::vector<quantize_case> cases;
  for (const tile_shape& tile : {tile_shape{1, 128}, {128, 128}, {128, 1}, {0, 0}}) {
    draws.begin();
    cases.push_back(next_case(rows, cols, tile));
    quantize_case& c = cases.back();
    if (tile.rows == 0) c.options.eps = 0x1p127f;
    c.options.nonfinite = nonfinite::skip_nonfinite;
    c.codes.misalignment = 3;
    c.codes.row_stride += 9;
  }
  const auto in_parts = [](const quantize_case& c, const call_site& site) {
    const matrix_view& in = site.views[quantize_buffers::in];
    const quantize_outputs out = outputs_of(c, site);
    const tile_shape& tile = c.options.tile;
    for (std::int64_t row = 0; row < in.rows; row += part) {
      quantize_options options = c.options;
      options.random.offset += static_cast<std::uint64_t>(row * in.cols);
      const matrix_shape scales = scales_shape(part, in.cols, tile);
      quantize(block_of(in, row, part, 0, in.cols),
               {.codes = block_of(out.codes, row, part, 0, in.cols),
                .scales = block_of(out.scales, tile.rows == 0 ? 0 : row / tile.rows, scales.rows, 0,
                                   scales.cols)},
               options, {supported_backends().back()});
    }
    return returned_values{};
  };
  expect_conforms(std::move(cases), 1, 1, function_target<quantize_case>("parts", in_parts));
}

}  // namespace samebits::support
