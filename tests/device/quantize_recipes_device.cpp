// Every preset, scales of whole rows and of whole tensors on each CUDA backend against the widest
// host backend: small matrices, large ones, and lists of a model's tensors.
//
// SAMEBITS_RECIPE_ELEMENTS: how many elements each preset quantizes, by default 2^27; of
// codes of 4 and 6 bits a 256th.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device_test.hpp"
#include "engine/cases/quantize.hpp"
#include "engine/core/sweeps.hpp"
#include "samebits/recipe.hpp"

namespace samebits::support {
namespace {

constexpr format_id sources[] = {format_id::bf16, format_id::fp16, format_id::fp32};

class QuantizeRecipes : public DeviceTest {
 protected:
  /// A case of dense matrices by a recipe, with a tile of its own.
  quantize_case& add(const recipe& rules, tile_shape tile, format_id from, std::int64_t rows,
                     std::int64_t cols) {
    quantize_case c{
        .from = from, .to = rules.code_format, .options = options_of(rules), .plain = true};
    c.options.tile = tile;
    c.scale_format = rules.scale_format;
    c.inverse_scales = rules.source == scale_source::delayed;
    lay_out(c, rows, cols, [] { return std::uint64_t{1}; });
    c.content = cases_.size() / 12;
    cases_.push_back(c);
    return cases_.back();
  }
  void expect_same_bits(std::size_t step) {
    expect_host_bits(
        listed_operation("quantize", quantizations(), thinned(std::move(cases_), step), 16),
        widest_host());
  }

  std::vector<quantize_case> cases_;
};

TEST_P(QuantizeRecipes, OfEveryPreset) {
  for (const recipe_preset& preset : recipe_presets) {
    for (const format_id from : sources) {
      for (const tile_shape tile : {preset.rules.tile, column_tile(preset.rules)}) {
        add(preset.rules, tile, from, 384, 2176).wanted = {true, true, true, true, false};
      }
    }
  }
  expect_same_bits(7);
}

/// Matrices of several turns of a block, half of the elements bf16; column-wise, transposed and ragged
/// outputs of some of their rows.
TEST_P(QuantizeRecipes, OfEveryPresetAndLargeMatrices) {
  const char* const asked = std::getenv("SAMEBITS_RECIPE_ELEMENTS");
  const std::int64_t wanted = asked != nullptr ? std::stoll(asked) : by_effort(1 << 27, 1 << 18);
  constexpr std::int64_t cols = 8192;
  for (const recipe_preset& preset : recipe_presets) {
    const recipe& rules = preset.rules;
    // Codes of 4 and 6 bits come from general kernels, which take far longer.
    const std::int64_t elements = rules.code_format == format_id::e4m3 ? wanted : wanted / 256;
    for (const format_id from : sources) {
      const std::int64_t rows = elements / cols / (from == format_id::bf16 ? 2 : 4);
      quantize_case& large = add(rules, rules.tile, from, std::max<std::int64_t>(2, rows), cols);
      if (from == format_id::fp16 && large.to == format_id::e4m3) large.to = format_id::e5m2;
      const std::int64_t some = std::clamp<std::int64_t>(rows, 2, 4099);
      add(rules, rules.tile, from, some, 4104).wanted = {true, true, true, true, false};
      add(rules, column_tile(rules), from, some, 4104).wanted = {false, false, true, true, false};
      add(rules, column_tile(rules), from, some, 4104).wanted = {true, true, true, true, false};
      add(rules, rules.tile, from, some, 2085);
    }
  }
  expect_same_bits(7);
}

/// The weights of a model of 24 layers and an embedding, with their biases and normalisations as rows:
/// 289 tensors in one launch.
TEST_P(QuantizeRecipes, OfTheTensorsOfAModel) {
  const std::int64_t d = by_effort(768, 256);
  std::vector<matrix_shape> shapes = {{by_effort(50304, 500), d}};
  for (int layer = 0; layer < by_effort(24, 2); ++layer) {
    shapes.insert(shapes.end(),
                  {{3 * d, d}, {d, d}, {4 * d, d}, {d, 4 * d}, {1, 3 * d}, {1, 4 * d}});
    shapes.insert(shapes.end(), 6, {1, d});
  }
  std::vector<list_quantization> lists;
  for (const char* const preset : {"MXFP8_TE", "TE_BLOCK_1D", "TE_BLOCK_2D", "DEEPGEMM_FP32_CUDA",
                                   "DSV3_IEEE", "TORCHAO_ROW", "FBGEMM_ROW", "TE_CURRENT"}) {
    const recipe& rules = find_recipe(preset)->rules;
    for (const matrix_shape& s : shapes) {
      quantize_case& c = add(rules, rules.tile, format_id::bf16, s.rows, s.cols);
      c.content = cases_.size();  // no two tensors are alike
    }
    lists.push_back({std::exchange(cases_, {})});
  }
  expect_host_bits(listed_operation("quantize_list", list_quantizations(), std::move(lists), 4),
                   widest_host());
}

/// A scale a row, of every width that the row kernels treat apart.
TEST_P(QuantizeRecipes, OfWholeRowsOfEveryWidth) {
  constexpr std::int64_t widths[] = {8,     24,    100,   256,   264,    512,   1000,
                                     2048,  2056,  4096,  5120,  8184,   8192,  16384,
                                     16392, 16390, 50304, 50257, 262144, 262152};
  for (const auto& [from, cols, rule, o] : combinations(
           sources, widths, std::array{scale_rule::te, scale_rule::div, scale_rule::mx_floor},
           std::array{overflow::saturate, overflow::ieee})) {
    const recipe rules{.tile = {1, 0}, .scale = rule, .overflow = o};
    add(rules, rules.tile, from, cols > 20000 ? by_effort(37, 3) : by_effort(514, 34), cols);
  }
  expect_same_bits(1);
}

/// A scale a tensor: few rows and many, ragged edges, and nothing but NaN.
TEST_P(QuantizeRecipes, OfWholeTensorsOfEveryShape) {
  constexpr matrix_shape shapes[] = {{1, 1 << 20}, {1, 300'001}, {5, 4096},
                                     {127, 2048},  {128, 128},   {3, 5},
                                     {1000, 1000}, {257, 129},   {300'000, 1}};
  for (const auto& [from, shape, kind, policy, rule, transposed] :
       combinations(sources, shapes, std::array{matrix_content::mixed, matrix_content::nan},
                    std::array{nonfinite::te, nonfinite::skip_nan, nonfinite::propagate},
                    std::array{scale_rule::te, scale_rule::div, scale_rule::pow2},
                    std::array{false, true})) {
    const recipe rules{.tile = {0, 0}, .scale = rule, .eps = 1e-4f, .nonfinite = policy};
    quantize_case& c = add(rules, rules.tile, from, shape.rows, shape.cols);
    c.kind = kind;
    c.wanted.codes_transposed = c.wanted.scales_transposed = transposed;
  }
  expect_same_bits(7);
}

INSTANTIATE_TEST_SUITE_P(Backends, QuantizeRecipes, cuda_backends(), cuda_backend_name);

}  // namespace
}  // namespace samebits::support
