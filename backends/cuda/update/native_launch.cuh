// The launch of the kernel of a formula.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/update_kernel.cuh"

namespace samebits::cuda {

/// Enqueues a step by the formula with this number, if the list has it.
template <class Formulas>
void launch_native(std::uint8_t number, const update_launch& call, void* stream) {
  Formulas::visit(number, [&](auto formula) {
    launch_kernel("update kernel", native_update_kernel<decltype(formula)>,
                  static_cast<unsigned>(call.list.chunks), call.threads, 0,
                  static_cast<cudaStream_t>(stream), call);
  });
}

}  // namespace samebits::cuda
