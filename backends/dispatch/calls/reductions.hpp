// Reductions: the checked calls that a backend receives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {

enum class reduction : std::uint8_t { amax, counts, sum, sum_of_squares, dot };

/// The result; the call determines which member is valid.
struct reduction_result {
  float amax;
  element_counts counts;
  double sum;  ///< sum, sum of squares or dot
};

/// A checked call. The matrix may be empty. One of `result` and `result_on_device` is not null.
struct reduction_call {
  reduction what;
  const_matrix_view x;
  const_matrix_view y;  ///< for dot only
  dot_options options;  ///< for dot only
  /// Host memory. A device backend waits and allocates from the stream's memory pool.
  reduction_result* result = nullptr;
  void* result_on_device = nullptr;  ///< device memory of the result's type
  std::byte* workspace = nullptr;    ///< device memory, or null
};

/// Whether the reduction uses floating-point operations, which process state or build flags can
/// change.
constexpr bool has_steps(reduction what) {
  return what != reduction::amax && what != reduction::counts;
}

}  // namespace samebits::backends
