// Functions of one number that array functions select by name, and the rules that say whose bits a
// function returns (contract, section 11).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/table.hpp"

namespace samebits {

/// A function of one number. `pow` has its exponent as a parameter.
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
  pow,         ///< x^parameter
  rsqrt,       ///< 1 / sqrt(x)
  reciprocal,  ///< 1 / x
  sigmoid,     ///< 1 / (1 + e^-x)
  silu,        ///< x * sigmoid(x)
  gelu,        ///< x * (1 + erf(x / sqrt(2))) / 2
  gelu_tanh,   ///< gelu with an approximation of erf by tanh
  softplus,    ///< log(1 + e^x)
  elu,         ///< x for x > 0, else parameter * (e^x - 1)
  relu,        ///< max(x, 0)
  leaky_relu,  ///< x for x > 0, else parameter * x
  mish,        ///< x * tanh(softplus(x))
  hardswish,   ///< x * min(max(x + 3, 0), 6) / 6
  fast_exp,    ///< CUDA's __expf
  fast_log,    ///< CUDA's __logf
};
template <>
inline constexpr auto table_of<function> = enum_table<function>({
    {function::exp, "exp"},
    {function::exp2, "exp2"},
    {function::expm1, "expm1"},
    {function::log, "log"},
    {function::log2, "log2"},
    {function::log10, "log10"},
    {function::log1p, "log1p"},
    {function::sin, "sin"},
    {function::cos, "cos"},
    {function::tanh, "tanh"},
    {function::erf, "erf"},
    {function::erfc, "erfc"},
    {function::pow, "pow"},
    {function::rsqrt, "rsqrt"},
    {function::reciprocal, "reciprocal"},
    {function::sigmoid, "sigmoid"},
    {function::silu, "silu"},
    {function::gelu, "gelu"},
    {function::gelu_tanh, "gelu_tanh"},
    {function::softplus, "softplus"},
    {function::elu, "elu"},
    {function::relu, "relu"},
    {function::leaky_relu, "leaky_relu"},
    {function::mish, "mish"},
    {function::hardswish, "hardswish"},
    {function::fast_exp, "fast_exp"},
    {function::fast_log, "fast_log"},
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
inline constexpr auto table_of<function_rule> = enum_table<function_rule>({
    {function_rule::exact, "exact"},
    {function_rule::cuda_13_0, "cuda_13_0"},
    {function_rule::torch_2_11, "torch_2_11"},
    {function_rule::triton_3_6, "triton_3_6"},
    {function_rule::torch_compile_2_11, "torch_compile_2_11"},
});

}  // namespace samebits
