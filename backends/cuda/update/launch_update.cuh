// Launches of update_kernel and of lamb's kernels. Sources of this folder instantiate
// launch_update() for their formulas, so that nvcc compiles them side by side.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/lamb_kernels.cuh"
#include "backends/cuda/update/update_kernel.cuh"

namespace samebits::cuda {

template <class Formula, class Arithmetic>
void launch_update(const update_launch& call, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const auto chunks = static_cast<unsigned>(call.list.chunks);
  if constexpr (Formula::rule == update_rule::lamb) {
    const auto tensors = static_cast<unsigned>(call.list.tensors);
    launch_kernel("lamb states kernel", lamb_states_kernel<Formula, Arithmetic>, chunks,
                  update_threads, 0, on, call);
    launch_kernel("lamb factors kernel", lamb_factors_kernel<Formula, Arithmetic>, tensors,
                  update_threads, 0, on, call);
    launch_kernel("lamb weights kernel", lamb_weights_kernel<Formula, Arithmetic>, chunks,
                  update_threads, 0, on, call);
  } else {
    launch_kernel("update kernel", update_kernel<Formula, Arithmetic>, chunks, update_threads, 0,
                  on, call);
  }
}

}  // namespace samebits::cuda

/// Defines launch_update() for a formula, in namespace samebits::cuda.
#define SAMEBITS_LAUNCH_UPDATE(arithmetic, ...)                                   \
  template void launch_update<numerics::update_formula<__VA_ARGS__>, arithmetic>( \
      const update_launch&, void*)
