// Functions of arrays on the CUDA backends: chooses the kernels of a call by its rule.
#include "backends/cuda/functions/functions.hpp"

namespace samebits::cuda {

using backends::evaluate_call;

void launch_definition(const evaluate_call& call, void* stream) {
  (call.is_exact() ? launch_exact_definition : launch_definition_functions)(call, stream);
}

void enqueue_evaluate(const evaluate_call& call, arithmetic by, void* stream) {
  if (launch_table(call, stream)) return;
  if (by == arithmetic::by_definition) return launch_definition(call, stream);
  if (call.is_exact()) return launch_exact_native(call, stream);
  (units_hold() ? launch_instruction_functions : launch_definition_functions)(call, stream);
}

}  // namespace samebits::cuda
