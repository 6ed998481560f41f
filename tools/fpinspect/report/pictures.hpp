// The pictures of a report. Each is a function of plain figures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fpinspect/report/svg.hpp"
#include "fpinspect/report/tile_map.hpp"
#include "fpinspect/scaler/scaler_plot.hpp"
#include "fpinspect/verdict/evidence.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// Width of all pictures in their own units. They are readable from 350 pixels on.
inline constexpr double picture_width = 400;

/// Elements by power of two as columns, with a row for each format: normal, subnormal, outside.
///
/// @param counts  number of elements by floor(log2(|x|)); not empty
svg_picture exponent_picture(const std::string& tensor, const std::map<int, std::uint64_t>& counts,
                             std::span<const samebits::format_id> formats);

/// What fp16 loses of the gradient that loses the largest share, at each power of two as loss scale.
///
/// @param tensors  some are gradients
/// @param best  the largest loss scale without overflow, as its log2
/// @param need_percent  the share that may be lost
svg_picture loss_scale_picture(std::span<const tensor_evidence> tensors, int best,
                               double need_percent);

/// The loss scale over the steps of a training run, on a logarithmic axis, above the share of
/// skipped steps.
///
/// @param rows  consecutive steps, at least one; scales above 0
svg_picture scale_trace_picture(std::span<const scaler_row> rows);

/// Significant bits that each format keeps at each magnitude, above the magnitudes of the file.
///
/// @param counts  of all tensors, by floor(log2(|x|)); may be empty
svg_picture resolution_picture(const std::map<int, std::uint64_t>& counts);

/// The amax of each tile, by binades below that of the tensor.
svg_picture amax_picture(const std::string& tensor, const tile_map& map);

/// The SQNR of each tile under a choice. Nothing if the map has no errors.
std::optional<svg_picture> error_picture(const std::string& tensor, const tile_map& map,
                                         std::string_view choice);

}  // namespace fpinspect
