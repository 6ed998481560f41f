// Layouts: the names and shapes under which checkpoints store quantized matrices.
//
//   compressed-tensors  X.weight, X.weight_scale                     float-quantized, mxfp8-quantized
//   deepseek            X.weight, X.weight_scale_inv                 128x128 tiles, as DeepSeek-V3
//   plain               X, X.scales, metadata samebits.block:X       every tile and format
//                       with two levels also X.tensor_scale and samebits.scale_rule:X
#pragma once

#include "fpinspect/output/json.hpp"
#include "fpinspect/tensors/source/selection.hpp"

namespace fpinspect {

enum class layout : std::uint8_t { compressed_tensors, deepseek, plain };
/// Behind the name of the codes, the name of their scales; in the order of the layouts.
inline constexpr std::array<std::string_view, 3> scales_suffixes = {"_scale", "_scale_inv",
                                                                    ".scales"};
/// Before the name of the codes, the key of their tile in the metadata of the plain layout.
inline constexpr std::string_view block_key = "samebits.block:";
/// Before the name of the codes, the key of their scale rule in the metadata, if it has two levels.
inline constexpr std::string_view rule_key = "samebits.scale_rule:";
/// Behind the name of the codes, the name of the tensor's scale.
inline constexpr std::string_view tensor_scale_suffix = ".tensor_scale";

/// How matrices are quantized.
struct quantization_rules {
  quantize_options options = {};
  format_id to = format_id::e4m3;
  format_id scale_format = format_id::fp32;
  std::string_view recipe = {};  ///< the preset's name, or empty

  /// "TE_BLOCK_2D: e4m3, 128x128, scales fp32"
  [[nodiscard]] std::string text() const;
};

/// The tensor of scales as it is stored; its data is that of the scales in any layout.
tensor_info stored_scales(layout l, const std::string& codes, const matrix_shape& matrix,
                          const quantization_rules& rules);

/// Why the layout cannot hold a tensor with these rules; empty if it can.
std::string layout_obstacle(layout l, const std::string& name, const matrix_shape& matrix,
                            const quantization_rules& rules);

/// A layer and how its weight is quantized; null: not.
using quantized_layer = std::pair<std::string, const quantization_rules*>;

/// The member `quantization_config` of config.json; null in the plain layout.
/// @param layers  all layers with a weight that is a matrix
json_value quantization_config(layout l, std::span<const quantized_layer> layers);

/// The name of a weight without ".weight"; any other name as it is.
inline std::string layer_of(const std::string& tensor) {
  constexpr std::string_view weight = ".weight";
  return tensor.ends_with(weight) ? tensor.substr(0, tensor.size() - weight.size()) : tensor;
}

}  // namespace fpinspect

namespace samebits {
template <>
inline constexpr auto table_of<fpinspect::layout> =
    enum_table<fpinspect::layout::plain>({"compressed-tensors", "deepseek", "plain"});
}  // namespace samebits
