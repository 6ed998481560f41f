// Single steps of arithmetic on codes, by the library's array functions. The code of the array
// functions is compiled already, unlike that of samebits/arithmetic.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace fpinspect {

/// A code and its format.
struct number {
  samebits::format_id format;
  std::uint64_t code;
};

/// x, rounded once to nearest even.
number rounded(samebits::format_id format, double x);
double value_of(const number& x);

struct step_operands {
  number a;
  number b;
};

struct step_result {
  number result;
  samebits::flags raised;
};

/// Computes a operation b, rounded once to nearest even. Formats are fp32, fp16, bf16, e4m3, e5m2.
step_result step(samebits::operation op, samebits::format_id to, const step_operands& operands);

/// Adds `term` to each of several numbers, rounded stochastically: number i uses random word i of
/// seed 0 and `stream`.
std::vector<std::uint64_t> stochastic_add(samebits::format_id format,
                                          std::span<const std::uint64_t> codes, const number& term,
                                          std::uint64_t stream);

}  // namespace fpinspect
