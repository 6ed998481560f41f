// Reductions: the functions that a backend supplies, and the checked calls that it receives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {

enum class reduction : std::uint8_t { amax, counts, sum, sum_of_squares, dot };

/// A checked call. The matrix may be empty.
struct reduction_call {
  reduction what;
  const_matrix_view x;
  const_matrix_view y;  ///< for dot only
  dot_options options;  ///< for dot only
};

/// The result; the call determines which member is valid.
struct reduction_result {
  float amax;
  element_counts counts;
  double sum;  ///< sum, sum of squares or dot
};

/// Whether the reduction uses floating-point operations, which process state or build flags can
/// change.
constexpr bool has_steps(reduction what) {
  return what != reduction::amax && what != reduction::counts;
}

/// The reduction functions of a backend.
struct reducer {
  /// Host backends split the work among where.threads. Device backends wait for where.stream and
  /// allocate from its memory pool. Calls require_tested(); on the host only if has_steps().
  void (*reduce)(const reduction_call& call, const backend& self, reduction_result& result,
                 const executor& where);
  /// Device backends: bytes of device memory that enqueue() needs.
  std::size_t (*workspace)(const reduction_call& call) = nullptr;
  /// Device backends: enqueues the call on a stream (cudaStream_t).
  /// @param result  device memory of the result's type
  /// @param workspace  device memory; null to allocate from the stream's pool
  void (*enqueue)(const reduction_call& call, const backend& self, void* result,
                  std::byte* workspace, void* stream) = nullptr;
};

}  // namespace samebits::backends
