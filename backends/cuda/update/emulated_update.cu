// Optimizer steps in integers: one kernel for all formulas, because code in integers is long.
#include <cuda_runtime.h>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/update/group_steps.cuh"
#include "backends/cuda/update/update_kernel.cuh"

namespace samebits::cuda {
namespace {

/// Updates all tensors whose groups have a formula of formulas::of_elements. One block per chunk.
__global__ void __launch_bounds__(update_threads)
    emulated_update_kernel(const __grid_constant__ update_launch call) {
  using vector = update_vector<stored_by_definition, 8, false>;
  const numerics::list_chunk chunk = chunk_at(call.list, blockIdx.x);
  const numerics::update_row& row = call.list.rows[chunk.tensor];
  const group_step& group = group_of(call, row.group);
  if (!group.applied || !formulas::of_elements::has(group.formula)) return;
  int states = 0;
  formulas::of_elements::visit_in_kernel(group.formula,
                                         [&](auto formula) { states = formula.states; });
  for_each_vector<stored_by_definition, 8, false>(
      {row, group, call.keys, chunk, is_aligned(row)}, formats_of(row), states, [&](vector& v) {
        formulas::of_elements::visit_in_kernel(group.formula, [&](auto formula) {
          step_elements<decltype(formula)>(group.constants, v);
        });
        v.write_states(states);
        v.write_weights();
      });
}

}  // namespace

void launch_emulated_update(const update_launch& call, void* stream) {
  launch_kernel("update kernel", emulated_update_kernel, static_cast<unsigned>(call.list.chunks),
                update_threads, 0, static_cast<cudaStream_t>(stream), call);
}

}  // namespace samebits::cuda
