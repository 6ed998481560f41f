// Exact functions: the functions of the rule `exact` (contract, section 13) by name.
#pragma once

#include <cstdint>
#include <optional>

#include "numerics/functions/binary64_steps.hpp"
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

/// An exact_function: the function whose value or gradient it is, and its limits at +Inf and -Inf.
struct exact_row {
  exact_function value;
  function of;
  bool gradient;
  std::uint64_t at_inf;
  std::uint64_t at_minus_inf;
};
inline constexpr exact_row exact_rows[] = {
    {exact_function::exp, function::exp, false, inf, 0},
    {exact_function::exp2, function::exp2, false, inf, 0},
    {exact_function::expm1, function::expm1, false, inf, one | sign_bit},
    {exact_function::log, function::log, false, inf, nan},
    {exact_function::log2, function::log2, false, inf, nan},
    {exact_function::log1p, function::log1p, false, inf, nan},
    {exact_function::tanh, function::tanh, false, one, one | sign_bit},
    {exact_function::erf, function::erf, false, one, one | sign_bit},
    {exact_function::rsqrt, function::rsqrt, false, 0, nan},
    {exact_function::reciprocal, function::reciprocal, false, 0, sign_bit},
    {exact_function::sigmoid, function::sigmoid, false, one, 0},
    {exact_function::silu, function::silu, false, inf, sign_bit},
    {exact_function::gelu, function::gelu, false, inf, sign_bit},
    {exact_function::gelu_tanh, function::gelu_tanh, false, inf, sign_bit},
    {exact_function::softplus, function::softplus, false, inf, 0},
    {exact_function::silu_gradient, function::silu, true, one, sign_bit},
    {exact_function::gelu_gradient, function::gelu, true, one, sign_bit},
    {exact_function::gelu_tanh_gradient, function::gelu_tanh, true, one, sign_bit},
};
inline constexpr int exact_function_count = sizeof(exact_rows) / sizeof(exact_row);

/// The function or its gradient as an exact_function; nothing if the rule lacks it.
constexpr std::optional<exact_function> find_exact(function f, bool gradient) {
  for (const exact_row& row : exact_rows) {
    if (row.of == f && row.gradient == gradient) return row.value;
  }
  return std::nullopt;
}

}  // namespace samebits::numerics::real
