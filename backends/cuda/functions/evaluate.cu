// Functions of arrays on the CUDA backends: chooses the kernels of a call by its rule. The kernel in
// integers of all rules but `exact`, one for all functions.
#include <cstdint>

#include "backends/cuda/functions/definition_steps.cuh"
#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/step_word.cuh"
#include "numerics/hardware/evaluate.hpp"

namespace samebits::cuda {
namespace {

/// Op of function_kernel: the function that the plan names.
template <bool Gradient>
struct definition_op {
  static constexpr int bytes = 0;
  static constexpr int count = 1;
  __device__ static constexpr bool has_gradient(const function_task&) { return Gradient; }
  numerics::function_plan plan;

  __device__ __forceinline__ std::uint32_t apply(const function_task&, std::uint32_t x,
                                                 [[maybe_unused]] std::uint32_t grad, std::uint64_t,
                                                 std::uint64_t) const {
    using word = step_word<definition_steps>;
    if constexpr (Gradient) {
      return numerics::evaluate_gradient_code<word>(plan, grad, x).bits;
    } else {
      return numerics::evaluate_code<word>(plan, x).bits;
    }
  }
};

}  // namespace

void launch_definition_functions(const backends::evaluate_call& call, void* stream) {
  constexpr const char* what = "cuda-emulated: evaluate";
  if (call.grad.data == nullptr) {
    launch_function(what, definition_op<false>{call.plan}, call, stream);
  } else {
    launch_function(what, definition_op<true>{call.plan}, call, stream);
  }
}

void launch_definition(const backends::evaluate_call& call, void* stream) {
  (call.is_exact() ? launch_exact_definition : launch_definition_functions)(call, stream);
}

void enqueue_evaluate(const backends::evaluate_call& call, arithmetic by, void* stream) {
  if (launch_table(call, stream)) return;
  if (by == arithmetic::by_definition) return launch_definition(call, stream);
  if (call.is_exact()) return launch_exact_native(call, stream);
  (units_hold() ? launch_instruction_functions : launch_definition_functions)(call, stream);
}

}  // namespace samebits::cuda
