// Optimizer steps by rule lamb.
#include <cuda_runtime.h>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/lamb_kernels.cuh"

namespace samebits::cuda {

template <class Formula, class Arithmetic>
void launch_lamb(const update_launch& call, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  const auto chunks = static_cast<unsigned>(call.list.chunks);
  const auto tensors = static_cast<unsigned>(call.list.tensors);
  launch_kernel("lamb states kernel", lamb_states_kernel<Formula, Arithmetic>, chunks,
                update_threads, 0, on, call);
  launch_kernel("lamb factors kernel", lamb_factors_kernel<Formula, Arithmetic>, tensors,
                update_threads, 0, on, call);
  launch_kernel("lamb weights kernel", lamb_weights_kernel<Formula, Arithmetic>, chunks,
                update_threads, 0, on, call);
}

using strict_lamb = numerics::update_formula<update_rule::lamb, update_profile::strict>;
using fma_lamb = numerics::update_formula<update_rule::lamb, update_profile::fma>;
using numerics::update_by_definition;

template void launch_lamb<strict_lamb, update_hardware>(const update_launch&, void*);
template void launch_lamb<fma_lamb, update_hardware>(const update_launch&, void*);
template void launch_lamb<strict_lamb, update_by_definition>(const update_launch&, void*);
template void launch_lamb<fma_lamb, update_by_definition>(const update_launch&, void*);

}  // namespace samebits::cuda
