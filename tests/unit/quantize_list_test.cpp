// Lists of tensors to quantize: what they hold, and what is refused by name.
#include "samebits/quantize_list.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/recipe.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

/// A tensor with room for every output.
struct tensor {
  tensor(std::int64_t r, std::int64_t c, tile_shape tile, format_id scale_format, unsigned seed)
      : rows(r), cols(c), grid(scales_shape(r, c, tile)), format(scale_format) {
    std::mt19937 random(seed);
    x.resize(static_cast<std::size_t>(r * c));
    for (auto& bits : x) bits = static_cast<std::uint16_t>(random() & 0xBFFF);
    const auto tiles = static_cast<std::size_t>(grid.rows * grid.cols);
    codes.assign(x.size(), 0x55);
    transposed.assign(x.size(), 0x55);
    scales.assign(tiles * static_cast<std::size_t>(storage_bytes(format)), 0x55);
  }
  quantize_item item() {
    return {.in = view_of_codes(format_id::bf16, static_cast<const void*>(x.data()), rows, cols),
            .outputs = {
                .codes = view_of_codes(format_id::e4m3, codes.data(), rows, cols),
                .scales = view_of_codes(format, scales.data(), grid.rows, grid.cols),
                .codes_transposed = view_of_codes(format_id::e4m3, transposed.data(), cols, rows)}};
  }

  std::int64_t rows, cols;
  matrix_shape grid;
  format_id format;
  std::vector<std::uint16_t> x;
  std::vector<std::uint8_t> codes, transposed, scales;
};

TEST(QuantizeList, GivenInverseScalesAreEachTensors) {
  const float inverse_scales[2] = {2.0f, 16.0f};
  const recipe& rules = find_recipe("TE_DELAYED")->rules;
  std::vector<tensor> got;
  for (const unsigned seed : {1u, 2u}) got.emplace_back(3, 5, rules.tile, format_id::fp32, seed);
  std::vector<quantize_item> items;
  for (std::size_t i = 0; i < 2; ++i) {
    items.push_back(got[i].item());
    items[i].inverse_scales = view_of(&inverse_scales[i], 1, 1);
  }
  quantize(quantize_list(items, rules));
  for (std::size_t i = 0; i < 2; ++i) {
    tensor expected(3, 5, rules.tile, format_id::fp32, static_cast<unsigned>(i) + 1);
    quantize_options options = options_of(rules);
    options.inverse_scales = items[i].inverse_scales;
    quantize(expected.item().in, expected.item().outputs, options);
    EXPECT_TRUE(got[i].codes == expected.codes && got[i].scales == expected.scales) << i;
  }
  items[1].inverse_scales = {};
  EXPECT_THROW(quantize_list(items, rules), invalid_argument);
  items[1].inverse_scales = items[0].inverse_scales;
  EXPECT_THROW(quantize_list(items, find_recipe("TE_CURRENT")->rules), invalid_argument);
}

TEST(QuantizeList, KnowsItsTensors) {
  EXPECT_EQ(quantize_list().size(), 0u);
  EXPECT_EQ(quantize_list().elements(), 0u);
  EXPECT_NO_THROW(quantize(quantize_list()));
  tensor a(2, 3, {}, format_id::fp32, 1), b(4, 5, {}, format_id::fp32, 2);
  std::vector<quantize_item> items = {a.item(), b.item()};
  items[1].name = "head";
  const quantize_list list(items, quantize_options{});
  EXPECT_EQ(list.size(), 2u);
  EXPECT_EQ(list.elements(), 26u);
  EXPECT_EQ(list.name(0), "items[0]");
  EXPECT_EQ(list.name(1), "head");
  EXPECT_EQ(list[1].in.cols, 5);
  EXPECT_EQ(list.space(), memory_space::host);
}

/// Spoils one of two tensors, and expects a message that begins so.
class QuantizeListArguments : public ::testing::Test {
 protected:
  void expect_refused(const std::string& message, const quantize_options& options = {}) {
    const std::string text = support::refusal_of([&] {
      const quantize_list list({a, b}, options);
    });
    EXPECT_EQ(text.substr(0, message.size()), message);
  }
  tensor first{2, 128, {}, format_id::fp32, 1}, second{2, 128, {}, format_id::fp32, 2};
  quantize_item a = first.item(), b = second.item();
};

TEST_F(QuantizeListArguments, NamesTheTensor) {
  b.name = "head";
  b.outputs.scales.rows = 1;
  expect_refused("items[1] 'head': outputs.scales: shape must be [2, 1]");
}
TEST_F(QuantizeListArguments, Statistics) {
  quantize_statistics s;
  a.outputs.statistics = &s;
  expect_refused("items[0]: outputs.statistics");
}
TEST_F(QuantizeListArguments, MixedFormats) {
  b.in.format = format_id::fp16;
  expect_refused("items[1]: in: format must be that of the list, bf16, got fp16");
  b.in.format = format_id::bf16;
  b.outputs.codes.format = b.outputs.codes_transposed.format = format_id::e5m2;
  expect_refused("items[1]: outputs: format of the codes must be that of the list, e4m3, got e5m2");
  b = second.item();
  b.outputs.scales.format = format_id::e8m0;
  expect_refused("items[1]: outputs: format of the scales must be that of the list, fp32, got e8m0",
                 {.scale = scale_rule::pow2});
}
TEST_F(QuantizeListArguments, Memory) {
  b.in.space = memory_space::device;
  expect_refused("items[1]: outputs.codes: must lie in the same memory");
  for (matrix_view* v : {&b.outputs.codes, &b.outputs.scales, &b.outputs.codes_transposed}) {
    v->space = memory_space::device;
  }
  expect_refused("items[1]: must lie in the same memory as items[0]");
}
TEST_F(QuantizeListArguments, OutputsThatOverlapAnotherTensor) {
  b.outputs.codes.data = first.codes.data() + 255;
  expect_refused("items[1]: an output overlaps items[0]");
  b = second.item();
  b.outputs.codes.data = first.x.data();
  expect_refused("items[1]: an output overlaps items[0]");
  b = second.item();
  b.in = a.in;  // read twice
  EXPECT_NO_THROW(quantize_list({a, b}, quantize_options{}));
}
TEST_F(QuantizeListArguments, WhatBelongsToOneCall) {
  const float one = 1.0f;
  expect_refused("options.inverse_scales", {.inverse_scales = view_of(&one, 1, 1)});
  std::byte room[16];
  expect_refused("options.workspace", {.workspace = room});
}
TEST_F(QuantizeListArguments, ScalesOfARecipe) {
  support::expect_refusal("items[0]", [&] {
    const quantize_list list({a, b}, find_recipe("MXFP8_TE")->rules);
  });
}
TEST_F(QuantizeListArguments, Executors) {
  const quantize_list list({a, b}, quantize_options{});
  EXPECT_THROW(quantize(list, {"no such backend", 1, nullptr}), invalid_argument);
  EXPECT_THROW(quantize(list, {"reference", -1, nullptr}), invalid_argument);
}

}  // namespace
}  // namespace samebits
