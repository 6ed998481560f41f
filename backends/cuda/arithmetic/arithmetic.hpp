// Array arithmetic of the CUDA backends.
#pragma once

#include <cstdint>

#include "backends/dispatch/array_arithmetic.hpp"

namespace samebits::cuda {

/// cuda-emulated: computes every operation by the definition.
extern const backends::calculator emulated_calculator;
/// cuda-native: computes by the GPU's binary32 and binary16 instructions, where docs/decisions/0026
/// proves the results equal to the definition.
extern const backends::calculator native_calculator;

/// Enqueues a call by the definition, for any layout. `raised`: device memory for the flags, read
/// and written only if the call wants a report.
void enqueue_definition(const backends::compute_call& call, std::uint32_t* raised, void* stream);

/// Whether the GPU's instructions compute an operation.
constexpr bool is_computed_by_gpu(operation op) {
  return op != operation::rem && op != operation::rint;
}

/// Enqueues a call that cuda-native supports, if rows are dense and start at multiples of 16 bytes.
/// Returns false, and enqueues nothing, for any other layout.
bool try_enqueue_words(const backends::compute_call& call, void* stream);

}  // namespace samebits::cuda
