// What a backend that multiplies matrices brings, and the checked calls it gets.
#pragma once

#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/quantize.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "samebits/matmul.hpp"

namespace samebits::backends {

/// K of a block of tile scales and of fp32_per_128.
inline constexpr std::int64_t scale_block = 128;

/// Scales of one operand; 1 where the view has no data.
struct scale_source {
  const_matrix_view values;
  tile_grid grid;
};

/// Arguments are checked before a backend sees them. M, N or K may be 0.
struct matmul_call {
  const_matrix_view a;  ///< [M, K]
  const_matrix_view b;  ///< [K, N]
  matrix_view d;        ///< [M, N]
  accumulator sum;
  numerics::accumulate_rule unit;  ///< of tensor_core alone
  scale_source a_scales;
  scale_source b_scales;
  bool scaled_along_k;  ///< scales change after each scale_block of K
  scale_order order;
  const_matrix_view c;  ///< without data: none
  addend c_enters;
};

struct matrix_multiplier {
  /// Shares the work among where.threads and returns when it is done. Asks require_tested() before
  /// it writes, if it computes in binary32 or binary64 steps.
  void (*multiply)(const matmul_call& call, const executor& where);
};

}  // namespace samebits::backends
