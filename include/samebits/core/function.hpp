// Functions of one number that array functions select by name, and the rules that say whose bits a
// function returns (contract, section 11).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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

inline constexpr int function_count = 27;

constexpr std::string_view name(function f) {
  switch (f) {
    case function::exp: return "exp";
    case function::exp2: return "exp2";
    case function::expm1: return "expm1";
    case function::log: return "log";
    case function::log2: return "log2";
    case function::log10: return "log10";
    case function::log1p: return "log1p";
    case function::sin: return "sin";
    case function::cos: return "cos";
    case function::tanh: return "tanh";
    case function::erf: return "erf";
    case function::erfc: return "erfc";
    case function::pow: return "pow";
    case function::rsqrt: return "rsqrt";
    case function::reciprocal: return "reciprocal";
    case function::sigmoid: return "sigmoid";
    case function::silu: return "silu";
    case function::gelu: return "gelu";
    case function::gelu_tanh: return "gelu_tanh";
    case function::softplus: return "softplus";
    case function::elu: return "elu";
    case function::relu: return "relu";
    case function::leaky_relu: return "leaky_relu";
    case function::mish: return "mish";
    case function::hardswish: return "hardswish";
    case function::fast_exp: return "fast_exp";
    case function::fast_log: return "fast_log";
  }
  return "?";
}

/// Returns the i-th function, 0 <= i < function_count.
constexpr function function_at(int i) { return static_cast<function>(i); }

/// Returns the function with this name, or nothing.
constexpr std::optional<function> find_function(std::string_view text) {
  for (int i = 0; i < function_count; ++i) {
    if (name(function_at(i)) == text) return function_at(i);
  }
  return std::nullopt;
}

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

inline constexpr int function_rule_count = 5;

constexpr std::string_view name(function_rule rule) {
  switch (rule) {
    case function_rule::exact: return "exact";
    case function_rule::cuda_13_0: return "cuda_13_0";
    case function_rule::torch_2_11: return "torch_2_11";
    case function_rule::triton_3_6: return "triton_3_6";
    case function_rule::torch_compile_2_11: return "torch_compile_2_11";
  }
  return "?";
}

/// Returns the i-th rule, 0 <= i < function_rule_count.
constexpr function_rule function_rule_at(int i) { return static_cast<function_rule>(i); }

/// Returns the rule with this name, or nothing.
constexpr std::optional<function_rule> find_function_rule(std::string_view text) {
  for (int i = 0; i < function_rule_count; ++i) {
    if (name(function_rule_at(i)) == text) return function_rule_at(i);
  }
  return std::nullopt;
}

}  // namespace samebits
