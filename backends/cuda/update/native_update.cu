// Optimizer steps by the GPU's instructions: the kernels of all formulas that need no norms.
#include <cuda_runtime.h>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/update_kernel.cuh"

namespace samebits::cuda {

void launch_native_update(std::uint8_t number, const update_launch& call, void* stream) {
  formulas::of_elements::visit(number, [&](auto formula) {
    launch_kernel("update kernel", native_update_kernel<decltype(formula)>,
                  static_cast<unsigned>(call.list.chunks), call.threads, 0,
                  static_cast<cudaStream_t>(stream), call);
  });
}

}  // namespace samebits::cuda
