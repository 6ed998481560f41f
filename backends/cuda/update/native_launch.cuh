// launch_native_update(). Sources of this folder instantiate it for their formulas, so that nvcc
// compiles them side by side.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/update_kernel.cuh"

namespace samebits::cuda {

template <class Formula>
void launch_native_update(const update_launch& call, void* stream) {
  launch_kernel("update kernel", native_update_kernel<Formula>,
                static_cast<unsigned>(call.list.chunks), call.threads, 0,
                static_cast<cudaStream_t>(stream), call);
}

}  // namespace samebits::cuda

/// Defines launch_native_update() for a formula, in namespace samebits::cuda.
#define SAMEBITS_NATIVE_UPDATE(...) \
  template void launch_native_update<formulas::__VA_ARGS__>(const update_launch&, void*)
