// On threads: makes operations of a host backend (operation_entry::run) from functions that compute
// a range of elements. The functions are called by several threads at once.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "backends/threads/parts.hpp"

namespace samebits::backends {

/// Converts a matrix: several threads call Convert, each for its own range of elements.
template <void (*Convert)(const convert_call&, element_range)>
void convert_on_threads(const convert_call& call, const executor& where) {
  for_each_part(call.in.rows * call.in.cols, where.threads,
                [&](element_range range) { Convert(call, range); });
}

/// Computes array arithmetic: several threads call Compute, each for its own range of elements.
/// Compute returns the flags of its range, or no flags if the call wants no report.
template <flags (*Compute)(const compute_call&, element_range)>
void compute_on_threads(const compute_call& call, const executor& where) {
  std::atomic<std::uint8_t> raised = 0;
  for_each_part(call.out.rows * call.out.cols, where.threads, [&](element_range range) {
    raised |= static_cast<std::uint8_t>(Compute(call, range));
  });
  if (call.all != nullptr) *call.all = static_cast<flags>(raised.load());
}

/// The operation Function of a host backend, by the backend's own functions.
template <auto Function, auto& Own, class Call>
void run_with(const Call& call, const executor& where) {
  Function(Own, call, where);
}

}  // namespace samebits::backends
