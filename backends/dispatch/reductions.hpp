// What a backend that reduces matrices brings, and the checked calls it gets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "samebits/reductions.hpp"

namespace samebits::backends {

enum class reduction : std::uint8_t { amax, counts, sum, sum_of_squares, dot };

/// Arguments are checked before a backend sees them. The matrix may be empty.
struct reduction_call {
  reduction what;
  const_matrix_view x;
  const_matrix_view y;  ///< of dot alone
  dot_options options;  ///< of dot alone
};

/// One of them, by the call.
struct reduction_result {
  float amax;
  element_counts counts;
  double sum;  ///< of dot too
};

/// Whether it computes in steps that a process or a build may spoil.
constexpr bool has_steps(reduction what) {
  return what != reduction::amax && what != reduction::counts;
}

struct reducer {
  /// Host backends share the work among where.threads; device backends wait for where.stream and
  /// take what they need from its memory pool. Asks require_tested(), on the host where
  /// has_steps().
  void (*reduce)(const reduction_call& call, const backend& self, reduction_result& result,
                 const executor& where);
  /// Device backends: bytes of device memory that enqueue() needs.
  std::size_t (*workspace)(const reduction_call& call) = nullptr;
  /// Device backends: enqueues the call on a stream (cudaStream_t). `result`, device memory of the
  /// result's own type, and the workspace, null where it is to come from the stream's pool.
  void (*enqueue)(const reduction_call& call, const backend& self, void* result,
                  std::byte* workspace, void* stream) = nullptr;
};

}  // namespace samebits::backends
