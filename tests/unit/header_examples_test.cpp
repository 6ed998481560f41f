// Examples of public headers as the headers show them: they compile and give the right results.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samebits/cast_statistics.hpp"
#include "samebits/optimizer.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"
#include "samebits/types.hpp"
#include "samebits/view.hpp"

namespace {

// The tests use no namespace of samebits, as the examples do not either.

constexpr std::int64_t tokens = 2;
constexpr std::int64_t width = 256;

/// Activations [tokens, width]: all 1, except a 448 in each tile of 1 x 128.
std::vector<samebits::bf16> activations() {
  std::vector<samebits::bf16> x(tokens * width, samebits::bf16(1.0f));
  for (std::size_t i = 0; i < x.size(); i += 128) x[i] = samebits::bf16(448.0f);
  return x;
}

/// Expects the codes of activations() under scales of 1.
void expect_activations(const std::vector<samebits::e4m3>& codes,
                        const std::vector<float>& scales) {
  EXPECT_EQ(scales, std::vector<float>(4, 1.0f));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    EXPECT_EQ(float(codes[i]), i % 128 == 0 ? 448.0f : 1.0f) << i;
  }
}

TEST(HeaderExamples, Quantize) {
  const std::vector<samebits::bf16> x = activations();
  const samebits::tile_shape tile = {1, 128};
  const auto [tile_rows, tile_cols] = samebits::scales_shape(tokens, width, tile);
  std::vector<samebits::e4m3> codes(x.size());
  std::vector<float> scales(static_cast<std::size_t>(tile_rows * tile_cols));
  samebits::quantize(samebits::view_of(x.data(), tokens, width),
                     {.codes = samebits::view_of(codes.data(), tokens, width),
                      .scales = samebits::view_of(scales.data(), tile_rows, tile_cols)},
                     {.tile = tile, .scale = samebits::scale_rule::div, .eps = 1e-4f});
  expect_activations(codes, scales);
}

TEST(HeaderExamples, Recipe) {
  const std::vector<samebits::bf16> x = activations();
  std::vector<samebits::e4m3> code_memory(x.size());
  std::vector<float> scale_memory(4);
  const auto in = samebits::view_of(x.data(), tokens, width);
  const auto codes = samebits::view_of(code_memory.data(), tokens, width);
  const auto scales = samebits::view_of(scale_memory.data(), 2, 2);
  const samebits::recipe_preset* p = samebits::find_recipe("DEEPGEMM_FP32_CPU");
  samebits::quantize(in, {.codes = codes, .scales = scales}, p->rules);
  expect_activations(code_memory, scale_memory);
}

TEST(HeaderExamples, StoreAndLoad) {
  const std::vector<samebits::bf16> w = activations();
  std::vector<std::uint16_t> codes(w.size());
  std::vector<float> scales((w.size() + 127) / 128);
  const samebits::stored_array master = {codes.data(), samebits::stored_format::fp16_scaled,
                                         scales.data()};
  samebits::store(samebits::view_of(w), master);

  std::vector<float> values(w.size());
  samebits::load(master, samebits::view_of(values));
  // 448 * 2^6 lies in [2^14, 2^15).
  EXPECT_EQ(scales, std::vector<float>(4, 0x1p-6f));
  EXPECT_EQ(codes[1], 0x5400);  // 64
  for (std::size_t i = 0; i < w.size(); ++i) EXPECT_EQ(values[i], float(w[i])) << i;
}

TEST(HeaderExamples, CastStatistics) {
  const std::vector<samebits::bf16> x = activations();
  samebits::statistics_pass pass(
      {.format = samebits::format_id::bf16, .casts = {samebits::format_id::e4m3}, .sums = true},
      {tokens, width});
  do {
    for (std::size_t at = 0; at < x.size(); at += 100) {
      const auto part = std::span(x).subspan(at, std::min<std::size_t>(100, x.size() - at));
      pass.add(samebits::view_of(part));
    }
  } while (pass.again());
  const samebits::cast_statistics s = pass.result();
  EXPECT_EQ(s.sum, 508.0 + 4 * 448.0);
  EXPECT_EQ(s.casts[0].changed, 0u);

  const std::vector<float> gradient = {1e-9f, 1.0f, 0.0f};
  const auto of = samebits::statistics_of(samebits::view_of(gradient),
                                          {.casts = {samebits::format_id::fp16}, .std = true});
  EXPECT_EQ(of.casts[0].underflow, 1u);
}

}  // namespace
