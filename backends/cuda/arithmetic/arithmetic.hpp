// The CUDA backends' array arithmetic.
#pragma once

#include <cstdint>

#include "backends/dispatch/array_arithmetic.hpp"

namespace samebits::cuda {

/// By the definition: everything.
extern const backends::calculator emulated_calculator;
/// By the GPU's binary32 and binary16 steps: what docs/decisions/0026 proves.
extern const backends::calculator native_calculator;

/// Enqueues a call by the definition, of any layout. `raised` is device memory, read and written
/// only where a report is wanted.
void enqueue_definition(const backends::compute_call& call, std::uint32_t* raised, void* stream);

/// Whether a format's results of an operation are had from the GPU.
constexpr bool is_computed_by_gpu(operation op) {
  return op != operation::rem && op != operation::rint;
}

/// Enqueues what the native backend has, of rows without gaps that start on 16-byte borders; false
/// where the call is not that.
bool try_enqueue_words(const backends::compute_call& call, void* stream);

}  // namespace samebits::cuda
