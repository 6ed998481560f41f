// Fused elements: the checked calls that a backend receives.
#pragma once

#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "numerics/hardware/torch_operators/fused_elements.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/view.hpp"

namespace samebits::backends {

using numerics::torch_2_11::max_fused_operands;
using numerics::torch_2_11::max_fused_results;

/// An operand. Its view may have fewer rows than the results, which repeat:
///
///   row of the results     0 1 2 3 4 5 6 7    each = 2, view.rows = 2
///   row of the view        0 0 1 1 0 0 1 1
struct fused_operand {
  const_matrix_view view;
  std::int64_t each = 1;                  ///< rows of the results, one after another, with one row
  const std::int64_t* indices = nullptr;  ///< instead: the view's row of each row of the results

  /// The row of the view; -1 if an index is none of a row.
  [[nodiscard]] std::int64_t row_of(std::int64_t row) const {
    if (indices == nullptr) return row / each % view.rows;
    const std::int64_t index = indices[row];
    return index >= 0 && index < view.rows ? index : -1;
  }
};

/// A checked call. All views are in the plan's format and have the columns of the results.
struct fused_call {
  numerics::torch_2_11::fused_plan plan;
  fused_operand in[max_fused_operands] = {};
  matrix_view out[max_fused_results] = {};
  random_stream random = {};  ///< of dropout
  std::uint64_t pitch = 0;    ///< elements from one row to the next, for the random bits

  // Inlined by force, as is_gradient() of functions of rows.
  [[nodiscard]] SAMEBITS_INLINE int operands() const { return operands_of(plan.of); }
  [[nodiscard]] SAMEBITS_INLINE int results() const { return results_of(plan.of); }
};

/// A checked call whose result is quantized at once: that of fused elements, or of a norm. The result,
/// tiles.in and elements.out[0] or norm.out, has no data.
struct fused_quantize_call {
  fused_call elements = {};
  quantize_call tiles = {};
  bool of_norm = false;
  row_call norm = {};
};

/// Elements of a chunk, one per word. Kernels may read and write up to the next multiple of 16.
struct fused_chunk {
  static constexpr int size = 512;
  alignas(64) std::uint32_t in[max_fused_operands][size] = {};  ///< codes
  alignas(64) std::uint32_t random[size] = {};
  alignas(64) std::uint32_t out[max_fused_results][size];  ///< codes, written
};

/// A kernel: computes chunk.out for `count` elements.
using fused_codes = void (*)(const fused_call& call, fused_chunk& chunk, int count);

}  // namespace samebits::backends
