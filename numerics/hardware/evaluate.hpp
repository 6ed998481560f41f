// Evaluate: a function or its gradient by the rule of a function (contract, section 11).
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/erf.hpp"
#include "numerics/hardware/cuda_functions/erfc.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/expm1.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/log1p.hpp"
#include "numerics/hardware/cuda_functions/pow.hpp"
#include "numerics/hardware/cuda_functions/rsqrt_function.hpp"
#include "numerics/hardware/cuda_functions/sin.hpp"
#include "numerics/hardware/cuda_functions/tanh.hpp"
#include "numerics/hardware/torch_operators/activation_gradients.hpp"
#include "numerics/hardware/torch_operators/activations.hpp"
#include "numerics/hardware/torch_operators/function_gradients.hpp"
#include "numerics/hardware/torch_operators/power.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "numerics/hardware/triton_functions/compiled_activations.hpp"
#include "numerics/hardware/triton_functions/triton_functions.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/function.hpp"

namespace samebits::numerics {

/// Whether a rule has a function of numbers in this format.
constexpr bool has_function(function_rule rule, function f, format_id format) {
  const bool is_tensor =
      format == format_id::fp32 || format == format_id::fp16 || format == format_id::bf16;
  if (rule == function_rule::triton_3_6) {
    return is_tensor && (f == function::exp || f == function::exp2 || f == function::log ||
                         f == function::log2 || f == function::erf || f == function::rsqrt ||
                         f == function::sigmoid);
  }
  if (rule == function_rule::torch_compile_2_11) {
    return is_tensor && (f == function::sigmoid || f == function::silu || f == function::gelu ||
                         f == function::gelu_tanh);
  }
  if (rule == function_rule::torch_2_11) {
    static_assert(static_cast<int>(function::fast_exp) == 25,
                  "a new function before fast_exp: say here whether torch_2_11 has it");
    return is_tensor && f < function::fast_exp && f != function::log10 && f != function::sin &&
           f != function::cos && f != function::erfc;
  }
  if (rule != function_rule::cuda_13_0 || format != format_id::fp32) return false;
  return static_cast<int>(f) <= static_cast<int>(function::rsqrt) || f == function::fast_exp ||
         f == function::fast_log;
}

/// A function with its rule and parameter, ready to be applied to many numbers.
struct function_plan {
  function_rule rule;
  function of;
  format_id format;
  std::uint32_t parameter;  ///< binary32
  torch_2_11::power power;  ///< of torch_2_11's pow
  torch_2_11::power lower;  ///< of its gradient: the exponent minus 1
};

/// @param parameter  binary64 bits; used by functions with a parameter
/// @param parameter_minus_one  binary64 bits; used by pow
SAMEBITS_HD constexpr function_plan plan_of(function_rule rule, function f, format_id format,
                                            std::uint64_t parameter,
                                            std::uint64_t parameter_minus_one) {
  function_plan plan = {rule, f, format, torch_2_11::narrow(parameter), {}, {}};
  if (f != function::pow) return plan;
  plan.power = torch_2_11::power_of(format, parameter);
  plan.lower = torch_2_11::power_of(format, parameter_minus_one);
  return plan;
}

/// The function of x by triton_3_6; both are binary32 bits.
template <class Word>
SAMEBITS_HD constexpr Word evaluate_triton(function f, Word x) {
  namespace cuda = cuda_13_0;
  namespace triton = triton_3_6;
  if (f == function::exp) return triton::exp<Word>(x);
  if (f == function::exp2) return triton::exp2<Word>(x);
  if (f == function::log) return cuda::log<Word>(x);
  if (f == function::log2) return cuda::log2<Word>(x);
  if (f == function::erf) return triton::erf<Word>(x);
  if (f == function::rsqrt) return triton::rsqrt<Word>(x);
  return triton::sigmoid<Word>(x);
}

/// The function of x by torch_compile_2_11; both are binary32 bits.
template <class Word>
SAMEBITS_HD constexpr Word evaluate_compiled(function f, Word x) {
  namespace compiled = torch_compile_2_11;
  if (f == function::silu) return compiled::silu(x);
  if (f == function::gelu) return compiled::gelu(x);
  if (f == function::gelu_tanh) return compiled::gelu_tanh(x);
  return compiled::sigmoid(x);
}

/// The function of x; both are binary32 bits. The caller rounds the result to the plan's format.
/// Lanes may return any NaN code.
template <class Word>
SAMEBITS_HD constexpr Word evaluate(const function_plan& plan, Word x) {
  namespace cuda = cuda_13_0;
  namespace torch = torch_2_11;
  using ptx::div;
  if (plan.rule == function_rule::triton_3_6) return evaluate_triton(plan.of, x);
  if (plan.rule == function_rule::torch_compile_2_11) return evaluate_compiled(plan.of, x);
  switch (plan.of) {
    case function::exp: return cuda::exp<Word>(x);
    case function::exp2: return cuda::exp2<Word>(x);
    case function::expm1: return cuda::expm1<Word>(x);
    case function::log: return cuda::log<Word>(x);
    case function::log2: return cuda::log2<Word>(x);
    case function::log10: return cuda::log10<Word>(x);
    case function::log1p: return cuda::log1p<Word>(x);
    case function::sin: return cuda::sin<Word>(x);
    case function::cos: return cuda::cos<Word>(x);
    case function::tanh: return cuda::tanh<Word>(x);
    case function::erf: return cuda::erf<Word>(x);
    case function::erfc: return cuda::erfc<Word>(x);
    case function::pow:
      if (plan.rule == function_rule::cuda_13_0) return cuda::pow<Word>(x, Word(plan.parameter));
      return torch::pow(plan.format, x, plan.power);
    case function::rsqrt: return cuda::rsqrt<Word>(x);
    case function::reciprocal: return div(Word(torch::one), x);
    case function::sigmoid: return torch::sigmoid(x);
    case function::silu: return torch::silu(x);
    case function::gelu: return torch::gelu(x);
    case function::gelu_tanh: return torch::gelu_tanh(x);
    case function::softplus: return torch::softplus(x);
    case function::elu: return torch::elu(x, plan.parameter);
    case function::relu: return torch::relu(x);
    case function::leaky_relu: return torch::leaky_relu(x, plan.parameter);
    case function::mish: return torch::mish(x);
    case function::hardswish: return torch::hardswish(x);
    case function::fast_exp: return cuda::fast_exp<Word>(x);
    case function::fast_log: return cuda::fast_log<Word>(x);
    default: return x;  // not called: has_function() is false
  }
}

/// The gradient of x by torch_2_11, where `grad` is the gradient of the function's result. All are
/// binary32 bits. The caller rounds the result to the plan's format.
template <class Word>
SAMEBITS_HD constexpr Word evaluate_gradient(const function_plan& plan, Word grad, Word x) {
  namespace torch = torch_2_11;
  using ptx::div, ptx::mul;
  const format_id format = plan.format;
  const auto y = [&] { return torch::stored(format, evaluate(plan, x)); };
  switch (plan.of) {
    case function::exp: return mul(grad, y());
    case function::exp2: return torch::exp2_gradient(format, grad, y());
    case function::expm1: return torch::expm1_gradient(format, grad, y());
    case function::log: return div(grad, x);
    case function::log2: return torch::log2_gradient(format, grad, x);
    case function::log1p: return torch::log1p_gradient(format, grad, x);
    case function::tanh: return torch::tanh_gradient(format, grad, y());
    case function::erf: return torch::erf_gradient(format, grad, x);
    case function::pow: return torch::pow_gradient(format, grad, x, plan.parameter, plan.lower);
    case function::rsqrt: return torch::rsqrt_gradient(format, grad, y());
    case function::reciprocal: return torch::reciprocal_gradient(format, grad, y());
    case function::sigmoid: return torch::sigmoid_gradient(format, grad, y());
    case function::silu: return torch::silu_gradient(grad, x);
    case function::gelu: return torch::gelu_gradient(grad, x);
    case function::gelu_tanh: return torch::gelu_tanh_gradient(grad, x);
    case function::softplus: return torch::softplus_gradient(grad, x);
    case function::elu: return torch::elu_gradient(grad, x, plan.parameter);
    case function::relu: return torch::relu_gradient(grad, y());
    case function::leaky_relu: return torch::leaky_relu_gradient(grad, x, plan.parameter);
    case function::mish: return torch::mish_gradient(grad, x);
    case function::hardswish: return torch::hardswish_gradient(grad, x);
    default: return x;  // not called: torch_2_11 has no such gradient
  }
}

/// The result's code for operand codes in the plan's format.
template <class Word>
SAMEBITS_HD constexpr Word evaluate_code(const function_plan& plan, Word code) {
  using torch_2_11::code_of, torch_2_11::value_of;
  return code_of(plan.format, evaluate(plan, value_of(plan.format, code)));
}
template <class Word>
SAMEBITS_HD constexpr Word evaluate_gradient_code(const function_plan& plan, Word grad, Word code) {
  using torch_2_11::code_of, torch_2_11::value_of;
  const Word g = value_of(plan.format, grad);
  return code_of(plan.format, evaluate_gradient(plan, g, value_of(plan.format, code)));
}

}  // namespace samebits::numerics
