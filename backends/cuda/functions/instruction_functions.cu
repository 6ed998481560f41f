// Functions of arrays and their gradients by the GPU's instructions, by all rules but `exact`, for
// cuda-native.
#include <cstdint>

#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/instruction_steps.cuh"
#include "backends/cuda/functions/step_word.cuh"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/visit.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/function.hpp"

namespace samebits::cuda {
namespace {

constexpr const char* what = "cuda-native: evaluate";

/// In place of a function: the one that the plan names.
constexpr auto any_function = static_cast<function>(enum_count<function>);

/// Op of function_kernel: function F of a format, or all functions of all formats of its width.
/// Kernels for other architectures than these instructions' return 0 and are never launched
/// (units_hold() in functions.hpp).
template <format_id Format, function F, bool Gradient>
struct instruction_op {
  static constexpr int bytes = Format == format_id::fp32 ? 4 : 2;
  static constexpr int count = 4;
  __device__ static constexpr bool has_gradient(const function_task&) { return Gradient; }
  numerics::function_plan plan;

  __device__ __forceinline__ std::uint32_t apply(const function_task&,
                                                 [[maybe_unused]] std::uint32_t x,
                                                 [[maybe_unused]] std::uint32_t grad, std::uint64_t,
                                                 std::uint64_t) const {
#if defined(SAMEBITS_HOPPER_UNITS)
    using word = step_word<instruction_steps>;
    numerics::function_plan p = plan;
    if constexpr (F != any_function) {
      p.of = F;
      p.format = Format;
    }
    if constexpr (Gradient) {
      return numerics::evaluate_gradient_code<word>(p, grad, x).bits;
    } else {
      return numerics::evaluate_code<word>(p, x).bits;
    }
#else
    return 0;
#endif
  }
};

/// Whether a rule of this file has the function, or its gradient, in a format. The rules of Triton
/// and torch.compile have no function that torch_2_11 lacks.
constexpr bool has_kernel(function f, format_id format, bool gradient) {
  using enum function_rule;
  return numerics::has_function(torch_2_11, f, format) ||
         (!gradient && numerics::has_function(cuda_13_0, f, format));
}

template <format_id Format, bool Gradient>
void launch_each(const backends::evaluate_call& call, void* stream) {
  with_enumerator(call.plan.of, [&]<function F>() {
    if constexpr (has_kernel(F, Format, Gradient)) {
      launch_function(what, instruction_op<Format, F, Gradient>{call.plan}, call, stream);
    }
  });
}

}  // namespace

void launch_instruction_functions(const backends::evaluate_call& call, void* stream) {
  using enum format_id;
  if (call.grad.data != nullptr) {
    backends::visit_quantized(call.plan.format,
                              [&]<format_id Format>() { launch_each<Format, true>(call, stream); });
  } else if (call.plan.format == fp32) {
    launch_each<fp32, false>(call, stream);
  } else {  // one kernel for all functions, because large arrays have tables
    launch_function(what, instruction_op<bf16, any_function, false>{call.plan}, call, stream);
  }
}

}  // namespace samebits::cuda
