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

/// An exact_function: the function whose value or gradient it is, its limits at +Inf and -Inf, and
/// the sum of y(x) * (2 x + 1) over all 2^32 operands x, mod 2^64: x and the result y(x) are the
/// bits of binary32 numbers. Every factor is odd, so a change of a single result changes the sum.
/// tests/exhaustive/exact_functions_sweep prints the sums of the results that it has proved.
struct exact_row {
  exact_function value;
  function of;
  bool gradient;
  std::uint64_t at_inf;
  std::uint64_t at_minus_inf;
  std::uint64_t sum;
};
inline constexpr exact_row exact_rows[] = {
    {exact_function::exp, function::exp, false, inf, 0, 0x73AB759CD0ED008F},
    {exact_function::exp2, function::exp2, false, inf, 0, 0x3CCBAB49ECA211FA},
    {exact_function::expm1, function::expm1, false, inf, one | sign_bit, 0x52D31F18CD96AF6A},
    {exact_function::log, function::log, false, inf, nan, 0x2EA226BE772E2A52},
    {exact_function::log2, function::log2, false, inf, nan, 0x5032E1D01C1A6848},
    {exact_function::log1p, function::log1p, false, inf, nan, 0xD74C2D2C011D5560},
    {exact_function::tanh, function::tanh, false, one, one | sign_bit, 0xA90CDDFDCF69DA78},
    {exact_function::erf, function::erf, false, one, one | sign_bit, 0x819D8B8B80055234},
    {exact_function::rsqrt, function::rsqrt, false, 0, nan, 0x03662DC2C8576EF8},
    {exact_function::reciprocal, function::reciprocal, false, 0, sign_bit, 0xF8B2C70B836898A6},
    {exact_function::sigmoid, function::sigmoid, false, one, 0, 0xB4D947748F8419BB},
    {exact_function::silu, function::silu, false, inf, sign_bit, 0x010E2BCE2BA9023E},
    {exact_function::gelu, function::gelu, false, inf, sign_bit, 0x2E72E04397282C39},
    {exact_function::gelu_tanh, function::gelu_tanh, false, inf, sign_bit, 0x857AF6858D24EEC8},
    {exact_function::softplus, function::softplus, false, inf, 0, 0x572EB3EA06078821},
    {exact_function::silu_gradient, function::silu, true, one, sign_bit, 0xB53B775B3336347F},
    {exact_function::gelu_gradient, function::gelu, true, one, sign_bit, 0xA25C3FE25A95992C},
    {exact_function::gelu_tanh_gradient, function::gelu_tanh, true, one, sign_bit,
     0xB6D43CDCD445FE15},
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
