// Amax and error of the parts of a matrix, on a grid of bounded size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/choices.hpp"
#include "samebits/backend.hpp"

namespace fpinspect {

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

/// The cells of a matrix of this size: powers of two of at least 1 element, as few as fit the grid.
tile_map empty_map(std::uint64_t rows, std::uint64_t cols);

/// Reads the tensor. Nothing for a tensor without elements, of rank 0 or 1, or without numbers.
///
/// @param stored_as  the choice whose errors are measured; nothing: no errors. Choices with a loss
///   scale, and recipes for elements that are not fp32, fp16 or bf16, are not measured.
/// @param of_weight  whether the tensor has the shape of a weight
std::optional<tile_map> tile_map_of(const shown_tensor& tensor, bool of_weight,
                                    std::optional<choice> stored_as,
                                    const samebits::executor& where);

}  // namespace fpinspect
