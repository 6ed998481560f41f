// Functions of the rule `exact` by approximations with a rounding test: launches.

#include "backends/cuda/functions/exact/approximation_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"

namespace samebits::cuda {
namespace {

namespace real = numerics::real;

/// Whether a call is one row of contiguous, aligned elements, to nearest even into 32 or 16 bits.
bool is_approximated(const backends::evaluate_call& call, const function_task& t) {
  return call.grad.data == nullptr && call.rule == cast_rule{} && t.rows == 1 && t.in.vectors &&
         t.out.vectors && t.out.bytes >= 2;
}

}  // namespace

bool launch_approximation(const backends::evaluate_call& call, void* stream) {
  const function_task t = function_task_of(call, exact_elements);
  if (!is_approximated(call, t)) return false;
  return real::with_function(call.exact, [&]<real::exact_function F>() {
    if constexpr (has_approximation<F>) {
      launch_kernel("cuda-native: evaluate", approximation_kernel<F>, function_blocks(t),
                    block_threads, 0, static_cast<cudaStream_t>(stream), t.in, t.out, t.cols);
    }
    return has_approximation<F>;
  });
}

}  // namespace samebits::cuda
