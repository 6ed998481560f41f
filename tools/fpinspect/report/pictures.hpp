// The pictures of a report. Each is a function of plain figures.
#pragma once

#include "fpinspect/report/svg.hpp"
#include "fpinspect/scaler/traces.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

// --- Tile maps -----------------------------------------------------------------------------------

/// One part of the matrix.
struct map_cell {
  double amax = 0;     ///< of its finite elements
  double signal = 0;   ///< sum of x^2
  double noise = 0;    ///< sum of (x - x')^2
  bool finite = true;  ///< no NaN and no infinity
};

/// The grid. Every cell has cell_rows x cell_cols elements, fewer at the edges.
struct tile_map {
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t cell_rows = 1;
  std::uint64_t cell_cols = 1;
  std::size_t grid_rows = 0;
  std::size_t grid_cols = 0;
  std::vector<map_cell> cells = {};  ///< row by row
  bool has_errors = false;

  [[nodiscard]] const map_cell& at(std::size_t row, std::size_t col) const {
    return cells[row * grid_cols + col];
  }
};

inline constexpr std::size_t most_map_rows = 24;
inline constexpr std::size_t most_map_cols = 48;

/// Reads the tensor. Nothing for a tensor without elements, of rank 0 or 1, or without numbers.
///
/// @param stored_as  the choice whose errors are measured; nothing: no errors. Choices with a loss
///   scale, and recipes for elements that are not fp32, fp16 or bf16, are not measured.
/// @param of_weight  whether the tensor has the shape of a weight
std::optional<tile_map> tile_map_of(const shown_tensor& tensor, bool of_weight,
                                    std::optional<choice> stored_as, const executor& where);

// --- Pictures ------------------------------------------------------------------------------------

/// Width of all pictures in their own units. They are readable from 350 pixels on.
inline constexpr double picture_width = 400;

/// Elements by power of two as columns, with a row for each format: normal, subnormal, outside.
///
/// @param counts  number of elements by floor(log2(|x|)); not empty
svg_picture exponent_picture(const std::string& tensor, const std::map<int, std::uint64_t>& counts,
                             std::span<const format_id> formats);

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
