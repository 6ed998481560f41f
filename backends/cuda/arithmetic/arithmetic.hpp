// Array arithmetic of the CUDA backends.
#pragma once

#include "backends/dispatch/calls/array_arithmetic.hpp"

namespace samebits::cuda {

/// Enqueues a call of cuda-emulated: every operation, by the definition, for any layout. Waits if the
/// call wants the flags in host memory.
void enqueue_compute_emulated(const backends::compute_call& call, void* stream);
/// Enqueues a call that native_computes() accepts.
void enqueue_compute_native(const backends::compute_call& call, void* stream);
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
