// Small computations that show what a format does to training. Every step is the library's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fpinspect {

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

}  // namespace fpinspect
