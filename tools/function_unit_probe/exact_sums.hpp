// Exact sums: one word for all results of each function of the rule `exact`.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "numerics/functions/exact_functions.hpp"
#include "samebits/core/function.hpp"

namespace samebits::function_units {

/// The sum of y(x) * (2 x + 1) over all 2^32 operands x, mod 2^64: x and the result y(x) are the
/// bits of binary32 numbers. Every factor is odd, so a change of a single result changes the sum.
/// tests/exhaustive/exact_functions_sweep prints the sums of the results that it has proved.
struct exact_sum {
  numerics::real::exact_function of;
  std::string_view name;
  std::uint64_t sum;
};
inline constexpr std::array<exact_sum, numerics::real::exact_function_count> exact_sums = {{
    {numerics::real::exact_function::exp, "exp", 0x73AB759CD0ED008Fu},
    {numerics::real::exact_function::exp2, "exp2", 0x3CCBAB49ECA211FAu},
    {numerics::real::exact_function::expm1, "expm1", 0x52D31F18CD96AF6Au},
    {numerics::real::exact_function::log, "log", 0x2EA226BE772E2A52u},
    {numerics::real::exact_function::log2, "log2", 0x5032E1D01C1A6848u},
    {numerics::real::exact_function::log1p, "log1p", 0xD74C2D2C011D5560u},
    {numerics::real::exact_function::tanh, "tanh", 0xA90CDDFDCF69DA78u},
    {numerics::real::exact_function::erf, "erf", 0x819D8B8B80055234u},
    {numerics::real::exact_function::rsqrt, "rsqrt", 0x03662DC2C8576EF8u},
    {numerics::real::exact_function::reciprocal, "reciprocal", 0xF8B2C70B836898A6u},
    {numerics::real::exact_function::sigmoid, "sigmoid", 0xB4D947748F8419BBu},
    {numerics::real::exact_function::silu, "silu", 0x010E2BCE2BA9023Eu},
    {numerics::real::exact_function::gelu, "gelu", 0x2E72E04397282C39u},
    {numerics::real::exact_function::gelu_tanh, "gelu_tanh", 0x857AF6858D24EEC8u},
    {numerics::real::exact_function::softplus, "softplus", 0x572EB3EA06078821u},
    {numerics::real::exact_function::silu_gradient, "silu gradient", 0xB53B775B3336347Fu},
    {numerics::real::exact_function::gelu_gradient, "gelu gradient", 0xA25C3FE25A95992Cu},
    {numerics::real::exact_function::gelu_tanh_gradient, "gelu_tanh gradient", 0xB6D43CDCD445FE15u},
}};

/// Operands of a sum.
inline constexpr std::uint64_t exact_operands = std::uint64_t{1} << 32;

}  // namespace samebits::function_units
