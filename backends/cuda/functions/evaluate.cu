// Functions of arrays on the CUDA backends: chooses the kernels of a call by its rule.
#include "backends/cuda/functions/functions.hpp"
#include "backends/dispatch/visit.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {
namespace {

using backends::evaluate_call;
using launch = void (*)(const evaluate_call& call, void* stream);

/// The kernels that use the GPU's instructions.
launch instruction_functions(const evaluate_call& call) {
  launch chosen = nullptr;
  backends::visit_quantized(call.plan.format, [&]<format_id Format>() {
    chosen = call.grad.data != nullptr ? launch_functions<Format, true>
                                       : launch_functions<Format, false>;
  });
  return chosen;
}

enum class by { definition, instructions };

/// The one place where the kernels of a rule are chosen; all rules but `exact` share them.
launch kernels_of(const evaluate_call& call, by arithmetic) {
  if (call.is_exact()) {
    return arithmetic == by::instructions ? launch_exact_native : launch_exact_definition;
  }
  if (arithmetic == by::instructions && units_hold()) return instruction_functions(call);
  return launch_definition_functions;
}

}  // namespace

void enqueue_evaluate_emulated(const evaluate_call& call, void* stream) {
  kernels_of(call, by::definition)(call, stream);
}

void enqueue_evaluate_native(const evaluate_call& call, void* stream) {
  kernels_of(call, by::instructions)(call, stream);
}

}  // namespace samebits::cuda
