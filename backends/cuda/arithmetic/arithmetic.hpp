// Array arithmetic of the CUDA backends.
#pragma once

#include "backends/cuda/instructions/arithmetic.hpp"
#include "backends/dispatch/calls/array_arithmetic.hpp"

namespace samebits::cuda {

/// Enqueues a call. By the definition: every operation, for any layout; waits if the call wants the
/// flags in host memory. By hardware: calls that native_computes() accepts.
void enqueue_compute(const backends::compute_call& call, arithmetic by, void* stream);
/// Whether cuda-native supports a call: the GPU's binary32 and binary16 instructions compute it, and
/// docs/decisions/0026 proves the results equal to the definition. Nobody asks for flags.
bool native_computes(const backends::compute_call& call);

/// Whether the GPU's instructions compute an operation.
constexpr bool is_computed_by_gpu(operation op) {
  return op != operation::rem && op != operation::rint;
}

/// Enqueues a call that cuda-native supports, if rows are dense and start at multiples of 16 bytes.
/// Returns false, and enqueues nothing, for any other layout.
bool try_enqueue_words(const backends::compute_call& call, void* stream);

}  // namespace samebits::cuda
