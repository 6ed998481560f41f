// Functions of one number that array functions select by name, and the rules that say whose bits a
// function returns (contract, section 11).
#pragma once

#include <cstdint>

#include "samebits/core/table.hpp"

namespace samebits {

/// A function of one number; table_of<function> has the formulas.
enum class function : std::uint8_t {
  exp,
  exp2,
  expm1,
  log,
  log2,
  log10,
  log1p,
  sin,
  cos,
  tanh,
  erf,
  erfc,
  pow,
  rsqrt,
  reciprocal,
  sigmoid,
  silu,
  gelu,
  gelu_tanh,
  softplus,
  elu,
  relu,
  leaky_relu,
  mish,
  hardswish,
  fast_exp,
  fast_log,
};
template <>
inline constexpr auto table_of<function> = enum_table<function>({
    {function::exp, "exp", "e^x"},
    {function::exp2, "exp2", "2^x"},
    {function::expm1, "expm1", "e^x - 1"},
    {function::log, "log", "log(x)"},
    {function::log2, "log2", "log2(x)"},
    {function::log10, "log10", "log10(x)"},
    {function::log1p, "log1p", "log(1 + x)"},
    {function::sin, "sin", "sin(x)"},
    {function::cos, "cos", "cos(x)"},
    {function::tanh, "tanh", "tanh(x)"},
    {function::erf, "erf", "erf(x)"},
    {function::erfc, "erfc", "1 - erf(x)"},
    {function::pow, "pow", "x^parameter"},
    {function::rsqrt, "rsqrt", "1 / sqrt(x)"},
    {function::reciprocal, "reciprocal", "1 / x"},
    {function::sigmoid, "sigmoid", "1 / (1 + e^-x)"},
    {function::silu, "silu", "x * sigmoid(x)"},
    {function::gelu, "gelu", "x * (1 + erf(x / sqrt(2))) / 2"},
    {function::gelu_tanh, "gelu_tanh", "gelu(x) with an approximation of erf by tanh"},
    {function::softplus, "softplus", "log(1 + e^x)"},
    {function::elu, "elu", "x for x > 0, else parameter * (e^x - 1)"},
    {function::relu, "relu", "max(x, 0)"},
    {function::leaky_relu, "leaky_relu", "x for x > 0, else parameter * x"},
    {function::mish, "mish", "x * tanh(softplus(x))"},
    {function::hardswish, "hardswish", "x * min(max(x + 3, 0), 6) / 6"},
    {function::fast_exp, "fast_exp", "CUDA's __expf(x)"},
    {function::fast_log, "fast_log", "CUDA's __logf(x)"},
});

/// Whether a function has a parameter: pow, elu, leaky_relu.
constexpr bool has_parameter(function f) {
  return f == function::pow || f == function::elu || f == function::leaky_relu;
}

/// Whose bits a function returns.
enum class function_rule : std::uint8_t {
  exact,       ///< the exact value, rounded once
  cuda_13_0,   ///< CUDA's functions, compiled by nvcc 13.0 for Hopper
  torch_2_11,  ///< the operators of PyTorch 2.11 on CUDA tensors on Hopper
  triton_3_6,  ///< functions of Triton 3.6 on Hopper
  /// kernels that torch.compile of PyTorch 2.11 makes with Triton 3.6 on Hopper
  torch_compile_2_11,
};
template <>
inline constexpr auto table_of<function_rule> = enum_table<function_rule::torch_compile_2_11>(
    {"exact", "cuda_13_0", "torch_2_11", "triton_3_6", "torch_compile_2_11"});

}  // namespace samebits
