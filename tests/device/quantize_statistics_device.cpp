// Statistics of quantizations by the native kernels against the widest host backend's: codes, scales
// and every statistic, for matrices of one block tile to several of each block.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "device/device_target.hpp"
#include "engine/cases/quantize.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"

namespace samebits::support {
namespace {

class QuantizeCounted : public ::testing::TestWithParam<format_id> {
 protected:
  /// Adds cases of a shape: of any bits, and of `contents - 1` other contents.
  void add(std::int64_t rows, std::int64_t cols, const std::vector<tile_shape>& tiles,
           std::uint64_t contents) {
    for (std::uint64_t content = 0; content < contents; ++content) {
      for (const tile_shape tile : tiles) {
        constexpr scale_rule rules[] = {scale_rule::te, scale_rule::te, scale_rule::pow2,
                                        scale_rule::rcp, scale_rule::te};
        quantize_case c{.from = GetParam(), .plain = true};
        c.to = cases_.size() % 4 == 1 ? format_id::e5m2 : format_id::e4m3;
        // propagate: a tile with an Inf has the scale Inf, and all its other elements become zero
        c.options = {.tile = tile,
                     .scale = rules[cases_.size() % std::size(rules)],
                     .nonfinite = cases_.size() % 2 == 0 ? nonfinite::te : nonfinite::propagate};
        lay_out(c, rows, cols, [] { return std::uint64_t{1}; });
        c.kind = content == 0 ? matrix_content::any_bits : matrix_content::mixed;
        c.content = content;
        c.wanted.statistics = true;
        cases_.push_back(c);
      }
    }
  }
  void expect_host_bits(std::size_t step, std::size_t batch) {
    device_target target("cuda-native");
    expect_same(
        listed_operation("quantize", quantizations(), thinned(std::move(cases_), step), batch),
        target, *host_target(supported_backends().back()), 0);
  }

 private:
  std::vector<quantize_case> cases_;
};

TEST_P(QuantizeCounted, OfOnePatchOfABlock) {
  const std::vector<tile_shape> tiles = {{1, 16},  {1, 32},  {1, 64},  {1, 128},  {1, 256},
                                         {16, 16}, {32, 32}, {64, 64}, {128, 128}};
  constexpr std::int64_t shapes[][2] = {{7, 128},   {3, 2048},   {200, 384},
                                        {136, 768}, {1040, 512}, {300, 4096}};
  for (const auto& [rows, cols] : shapes) add(rows, cols, tiles, 6);
  expect_host_bits(7, 64);
}

TEST_P(QuantizeCounted, OfManyPatchesOfABlock) {
  if (smallest_effort()) GTEST_SKIP() << "two block tiles of a block take the same path";
  add(2501, 16384, {{1, 128}, {128, 128}}, 3);
  add(40003, 768, {{1, 32}, {32, 32}}, 3);
  expect_host_bits(1, 4);
}

/// Small enough for the sanitizer; a GPU has fewer blocks than the first matrix has block tiles.
TEST_P(QuantizeCounted, OfTwoPatchesOfABlock) {
  add(525, 16384, {{1, 128}, {128, 128}}, 2);
  add(37, 384, {{1, 128}, {16, 16}}, 6);
  add(260, 2048, {{1, 16}, {32, 32}}, 2);
  expect_host_bits(1, 8);
}

INSTANTIATE_TEST_SUITE_P(Sources, QuantizeCounted,
                         ::testing::Values(format_id::bf16, format_id::fp16, format_id::fp32),
                         [](const auto& of) { return std::string(name(of.param)); });

}  // namespace
}  // namespace samebits::support
