// Gradient reductions as cases: lists of tensors with codes of every rank's own.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/core/problem.hpp"
#include "samebits/distributed.hpp"

namespace samebits::support {

/// A tensor with gaps between its rows, or between all elements, of which every rank has a copy
/// with codes of its own.
struct reduction_tensor {
  format_id format;
  std::int64_t rows, cols, row_stride, col_stride;
  std::vector<std::vector<std::uint64_t>> codes;  ///< per rank, in the order (row, column)
};

struct reduction_case {
  int ranks;
  std::vector<reduction_tensor> tensors;
  gradient_reduction how;
};

void describe(reduction_case& c, case_fields& fields);

/// Any communication dtype, formats, rounding and factor; up to 3 rows of up to `elements` elements
/// a tensor.
reduction_case draw_reduction(std::uint64_t seed, int ranks, int tensors, int elements);

/// reduce_gradients() over 1 to 8 ranks.
operation_of<reduction_case> gradient_reductions();

}  // namespace samebits::support
