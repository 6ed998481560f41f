// Small computations that show what a format does to training, and statements of tutorials that they
// refute. Every step is the library's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace fpinspect {

// --- Single steps of arithmetic on codes, by the library's array functions ------------------------

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

// --- Demonstrations, and statements of tutorials --------------------------------------------------

/// A table of texts and numbers.
struct demo_table {
  using cell = std::variant<std::string, double>;

  std::vector<std::string> columns;
  std::vector<std::vector<cell>> rows;
};

struct demo {
  std::string_view name;
  std::string_view question;
  demo_table (*run)();
  std::string_view answer;
};

std::span<const demo> demos();

// The computations. The columns are in the implementation.

/// 1 * 1e-8 in several formats.
demo_table tiny_mul();
/// The gradient of y = c * sum(w), with and without a loss scale.
demo_table grad_once();
/// The same number added again and again, each sum rounded.
demo_table repeated_sum();
/// A small update added many times, rounded to nearest and stochastically.
demo_table error_growth();
/// E[x^2] - E[x]^2 and the mean of (x - E[x])^2, in fp32.
demo_table layernorm_variance();

/// Variances of the same values, for one mean.
struct variance_case {
  double mean;
  double exact;     ///< of the fp32 values, in binary64
  double one_pass;  ///< E[x^2] - E[x]^2 in fp32
  double two_pass;  ///< the mean of (x - E[x])^2 in fp32
};

/// Computes the variance of 4096 fp32 values: `mean` plus random numbers in [-1, 1).
variance_case variance_of_case(double mean);

/// The result of a computation about a statement.
struct claim_evidence {
  bool refuted;
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, double>> figures;  ///< the numbers of the lines
};

struct claim {
  std::string_view name;
  std::string_view statement;
  std::string_view source;
  claim_evidence (*check)();
};

std::span<const claim> claims();

}  // namespace fpinspect
