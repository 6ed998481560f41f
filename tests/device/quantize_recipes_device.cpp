// Every preset, scales of whole rows and of whole tensors on each CUDA backend against the widest
// host backend.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
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

 private:
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
