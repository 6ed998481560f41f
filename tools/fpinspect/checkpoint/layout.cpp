// Layouts of quantized checkpoints: implementation.
//
// Sources: compressed-tensors 0.20 (quantization/quant_args.py, compressors/naive_quantized and
// mxfp8), DeepSeek-V3's config.json and inference/kernel.py.
#include "fpinspect/checkpoint/layout.hpp"

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/quantize/quantize_source.hpp"

namespace fpinspect {
namespace {

/// Tiles of a row, or of the whole matrix, may have any number of columns.
bool is_group(const tile_shape& tile) { return tile.rows == 1 && tile.cols > 1; }
bool is_block(const tile_shape& tile) { return tile.rows > 1 && tile.rows == tile.cols; }
bool is_whole(const tile_shape& tile) { return tile == tile_shape{0, 0}; }
bool is_row(const tile_shape& tile) { return tile == tile_shape{1, 0}; }

/// Weights and activations of a group of compressed-tensors.
json_object compressed_group(const quantization_rules& rules) {
  const tile_shape tile = rules.options.tile;
  const bool mx = rules.scale_format == format_id::e8m0;
  const json_value scale_type = mx ? json_value("torch.uint8") : json_value(std::nullopt);
  const auto arguments = [&](std::string_view strategy, std::optional<std::uint64_t> group,
                             bool dynamic) {
    json_object all = {{"num_bits", 8},        {"type", "float"},     {"symmetric", true},
                       {"strategy", strategy}, {"group_size", group}, {"dynamic", dynamic}};
    return mx ? all.add("scale_dtype", scale_type) : all;
  };
  const auto group =
      is_group(tile) ? std::optional(static_cast<std::uint64_t>(tile.cols)) : std::nullopt;
  json_object weights = arguments(is_block(tile)   ? "block"
                                  : is_group(tile) ? "group"
                                  : is_row(tile)   ? "channel"
                                                   : "tensor",
                                  group, false);
  if (is_block(tile)) weights.add("block_structure", extents_of({tile.rows, tile.cols}));
  // Activations get tiles of the same width, or a scale for each token.
  const auto width = is_block(tile) ? std::optional(static_cast<std::uint64_t>(tile.cols)) : group;
  return {{"format", mx ? "mxfp8-quantized" : "float-quantized"},
          {"weights", weights},
          {"input_activations", arguments(width ? "group" : "token", width, true)}};
}

json_value compressed_config(std::span<const quantized_layer> layers) {
  std::vector<const quantization_rules*> kinds;
  json_array ignored;
  for (const auto& [name, rules] : layers) {
    if (rules == nullptr) {
      ignored.add(name);
    } else {
      add_once(kinds, rules);
    }
  }
  json_object groups;
  bool mx = false;
  bool other = false;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    (kinds[i]->scale_format == format_id::e8m0 ? mx : other) = true;
    json_array targets;
    if (kinds.size() == 1) targets.add("Linear");
    for (const auto& [name, rules] : layers) {
      if (kinds.size() > 1 && rules == kinds[i]) targets.add(name);
    }
    groups.add(cat("group_", i),
               json_object{{"targets", targets}}.add(compressed_group(*kinds[i])));
  }
  return json_object{{"quant_method", "compressed-tensors"},
                     {"format", mx && other ? "mixed-precision"
                                : mx        ? "mxfp8-quantized"
                                            : "float-quantized"},
                     {"quantization_status", "compressed"},
                     {"config_groups", groups},
                     {"ignore", ignored}};
}

}  // namespace

std::string quantization_rules::text() const {
  return cat(recipe, recipe.empty() ? "" : ": ", to, ", ", block_text(options.tile), ", scales ",
             scale_format);
}

tensor_info stored_scales(layout l, const std::string& codes, const matrix_shape& matrix,
                          const quantization_rules& rules) {
  const bool compressed = l == layout::compressed_tensors;
  const bool mx = rules.scale_format == format_id::e8m0;
  const matrix_shape shape = scales_shape(matrix.rows, matrix.cols, rules.options.tile);
  tensor_info info = {.name = cat(codes, scales_suffixes[static_cast<std::size_t>(l)]),
                      .type = mx && compressed ? dtype::u8 : own_type(rules.scale_format),
                      .shape = extents_of(shape)};
  if (compressed && is_whole(rules.options.tile)) info.shape = {1};
  return info;
}

std::string layout_obstacle(layout l, const std::string& name, const matrix_shape& matrix,
                            const quantization_rules& rules) {
  if (l == layout::plain) {
    const bool whole = matrix.rows * matrix.cols * code_bits(rules.to) % 8 == 0;
    return whole ? "" : "needs codes that fill whole bytes";
  }
  const tile_shape tile = rules.options.tile;
  if (!name.ends_with(".weight")) return "names a tensor that is no \".weight\"";
  if (rules.to != format_id::e4m3) return "needs e4m3";
  if (l == layout::deepseek) {
    const bool fits = tile == tile_shape{128, 128} && rules.scale_format == format_id::fp32;
    return fits ? "" : "needs 128x128 tiles with scales in fp32";
  }
  const bool mx = rules.scale_format == format_id::e8m0;
  if (mx && tile != tile_shape{1, 32}) return "needs 1x32 tiles for scales in e8m0";
  if (!is_group(tile) && !is_block(tile) && !is_whole(tile) && !is_row(tile)) {
    return "needs tiles 1xG, GxG, row or tensor";
  }
  if (is_group(tile) && matrix.cols % tile.cols != 0) {
    return cat("needs a multiple of ", tile.cols, " columns for ", block_text(tile), " tiles");
  }
  return {};
}

json_value quantization_config(layout l, std::span<const quantized_layer> layers) {
  if (l == layout::compressed_tensors) return compressed_config(layers);
  if (l == layout::plain) return std::nullopt;
  json_array kept;
  for (const auto& [name, rules] : layers) {
    if (rules == nullptr) kept.add(name);
  }
  return json_object{{"quant_method", "fp8"},
                     {"fmt", "e4m3"},
                     {"activation_scheme", "dynamic"},
                     {"weight_block_size", std::vector<std::uint64_t>{128, 128}},
                     {"modules_to_not_convert", kept}};
}

}  // namespace fpinspect
