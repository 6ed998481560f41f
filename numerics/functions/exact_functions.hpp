// Exact functions: the functions of the rule `exact` (contract, section 13) by name.
#pragma once

#include <cstdint>
#include <optional>

#include "samebits/core/function.hpp"

namespace samebits::numerics::real {

/// The functions of the rule; the gradients of silu, gelu and gelu_tanh are functions of their own.
enum class exact_function : std::uint8_t {
  exp,
  exp2,
  expm1,
  log,
  log2,
  log1p,
  tanh,
  erf,
  rsqrt,
  reciprocal,
  sigmoid,
  silu,
  gelu,
  gelu_tanh,
  softplus,
  silu_gradient,
  gelu_gradient,
  gelu_tanh_gradient,
};
inline constexpr int exact_function_count = 18;

/// The function or its gradient as an exact_function; nothing if the rule lacks it.
constexpr std::optional<exact_function> find_exact(function f, bool gradient) {
  if (gradient) {
    switch (f) {
      case function::silu: return exact_function::silu_gradient;
      case function::gelu: return exact_function::gelu_gradient;
      case function::gelu_tanh: return exact_function::gelu_tanh_gradient;
      default: return std::nullopt;
    }
  }
  switch (f) {
    case function::exp: return exact_function::exp;
    case function::exp2: return exact_function::exp2;
    case function::expm1: return exact_function::expm1;
    case function::log: return exact_function::log;
    case function::log2: return exact_function::log2;
    case function::log1p: return exact_function::log1p;
    case function::tanh: return exact_function::tanh;
    case function::erf: return exact_function::erf;
    case function::rsqrt: return exact_function::rsqrt;
    case function::reciprocal: return exact_function::reciprocal;
    case function::sigmoid: return exact_function::sigmoid;
    case function::silu: return exact_function::silu;
    case function::gelu: return exact_function::gelu;
    case function::gelu_tanh: return exact_function::gelu_tanh;
    case function::softplus: return exact_function::softplus;
    default: return std::nullopt;
  }
}

}  // namespace samebits::numerics::real
