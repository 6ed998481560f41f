// What `demo` and `claims` share: single steps of arithmetic on codes, and variances.
#pragma once

#include "samebits/arithmetic.hpp"

namespace fpinspect {

/// A code and its format.
using number = samebits::operand;

/// x, rounded once to nearest even.
number rounded(samebits::format_id format, double x);
double value_of(const number& x);

struct step_result {
  number result;
  samebits::flags raised;
};

/// Computes a operation b, rounded once to nearest even.
step_result step(samebits::operation op, samebits::format_id to, const samebits::operands& x);

/// Variances of the same values, for one mean.
struct variance_case {
  double mean;
  double exact;     ///< of the fp32 values, in binary64
  double one_pass;  ///< E[x^2] - E[x]^2 in fp32
  double two_pass;  ///< the mean of (x - E[x])^2 in fp32
};

/// Computes the variance of 4096 fp32 values: `mean` plus random numbers in [-1, 1).
variance_case variance_of_case(double mean);

}  // namespace fpinspect
