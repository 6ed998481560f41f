// Rule functions: a kernel of the GPU's instructions for every function, format and gradient of all
// rules but `exact`, for cuda-native.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/cuda/functions/function_kernel.cuh"
#include "backends/cuda/functions/functions.hpp"
#include "backends/cuda/functions/instruction_steps.cuh"
#include "backends/cuda/functions/step_word.cuh"
#include "backends/dispatch/calls/evaluate.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/function.hpp"

namespace samebits::cuda {

/// Op of function_kernel: one function of one format by the GPU's instructions. Kernels for other
/// architectures than these instructions' return 0 and are never launched (units_hold() in
/// functions.hpp).
template <format_id Format, function F, bool Gradient>
struct instruction_op {
  static constexpr int bytes = Format == format_id::fp32 ? 4 : 2;
  static constexpr int count = 4;
  static constexpr bool gradient = Gradient;
  numerics::function_plan plan;

  __device__ __forceinline__ std::uint32_t apply([[maybe_unused]] std::uint32_t x,
                                                 [[maybe_unused]] std::uint32_t grad) const {
#if defined(SAMEBITS_HOPPER_UNITS)
    using word = step_word<instruction_steps>;
    numerics::function_plan p = plan;
    p.of = F;
    p.format = Format;
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

template <format_id Format, function F, bool Gradient>
void launch_one_function(const backends::evaluate_call& call, void* stream) {
  if constexpr (has_kernel(F, Format, Gradient)) {
    launch_function("cuda-native: evaluate", instruction_op<Format, F, Gradient>{call.plan}, call,
                    stream);
  }
}

template <format_id Format, bool Gradient>
void launch_functions(const backends::evaluate_call& call, void* stream) {
  using launch = void (*)(const backends::evaluate_call&, void*);
  [&]<int... F>(std::integer_sequence<int, F...>) {
    constexpr launch launches[] = {
        launch_one_function<Format, static_cast<function>(F), Gradient>...};
    launches[static_cast<int>(call.plan.of)](call, stream);
  }
  (std::make_integer_sequence<int, enum_count<function>>{});
}

}  // namespace samebits::cuda
