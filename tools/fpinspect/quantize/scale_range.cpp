// The range of scales: implementation.
#include "fpinspect/quantize/scale_range.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/convert.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

struct tiled_recipe {
  std::string_view recipe;
  std::string_view what;
};

constexpr std::array<tiled_recipe, 3> tiled_recipes = {{
    {"TE_BLOCK_2D", "128x128 tiles"},
    {"TE_BLOCK_1D", "1x128 tiles"},
    {"MXFP8_TE", "1x32 blocks"},
}};

/// Whether all codes of a tile are +0 or -0.
bool is_zero(const owned_matrix& codes, const samebits::tile_shape& tile, std::int64_t tile_row,
             std::int64_t tile_col) {
  const std::int64_t first_col = tile_col * tile.cols;
  const std::int64_t end_col = std::min(first_col + tile.cols, codes.shape.cols);
  const std::int64_t end_row = std::min((tile_row + 1) * tile.rows, codes.shape.rows);
  for (std::int64_t row = tile_row * tile.rows; row < end_row; ++row) {
    const std::byte* const line = codes.bytes.data() + row * codes.shape.cols;
    const bool zeros = std::all_of(line + first_col, line + end_col, [](std::byte code) {
      return (code & std::byte{0x7f}) == std::byte{0};
    });
    if (!zeros) return false;
  }
  return true;
}

void count_scale(scale_range& range, double scale) {
  if (!std::isfinite(scale) || scale <= 0) return;
  const int exponent = exponent_of(scale);
  range.smallest_log2 = std::min(range.smallest_log2.value_or(exponent), exponent);
  range.largest_log2 = std::max(range.largest_log2.value_or(exponent), exponent);
}

/// Counts the scales of a matrix band by band, so that the codes stay in cache.
scale_range range_by(const tiled_recipe& recipe, const samebits::const_matrix_view& in,
                     const samebits::executor& where) {
  constexpr std::int64_t band_elements = std::int64_t{1} << 20;
  constexpr std::int64_t tile_rows = 128;  // of the tallest tiles
  const samebits::recipe& rules = samebits::find_recipe(recipe.recipe)->rules;
  const std::int64_t band_rows = (band_elements / in.cols / tile_rows + 1) * tile_rows;
  owned_matrix codes(format_id::e4m3, {std::min(band_rows, in.rows), in.cols});
  scale_range range = {recipe.recipe, recipe.what};
  for (std::int64_t row = 0; row < in.rows; row += band_rows) {
    samebits::const_matrix_view band = in;
    band.rows = codes.shape.rows = std::min(band_rows, in.rows - row);
    band.data = static_cast<const std::byte*>(in.data) +
                row * in.row_stride * samebits::storage_bytes(in.format);
    const samebits::matrix_shape tiles = samebits::scales_shape(band.rows, in.cols, rules.tile);
    owned_matrix scales(rules.scale_format, tiles);
    samebits::quantize(band, {.codes = codes.view(), .scales = scales.view()}, rules, where);
    std::vector<double> values(static_cast<std::size_t>(tiles.rows * tiles.cols));
    samebits::convert(scales.view(), samebits::view_of(values.data(), tiles.rows, tiles.cols));
    range.tiles += values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      if (is_zero(codes, rules.tile, at / tiles.cols, at % tiles.cols)) {
        ++range.zero_tiles;
      } else {
        count_scale(range, values[i]);
      }
    }
  }
  return range;
}

}  // namespace

std::vector<scale_range> scale_ranges_of(const samebits::const_matrix_view& in,
                                         const samebits::executor& where) {
  std::vector<scale_range> ranges;
  for (const tiled_recipe& recipe : tiled_recipes) ranges.push_back(range_by(recipe, in, where));
  return ranges;
}

}  // namespace fpinspect
