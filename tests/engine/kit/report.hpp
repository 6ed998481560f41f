// Texts of failed checks.
#pragma once

#include <string>

#include "engine/core/text.hpp"
#include "engine/kit/failed_call.hpp"
#include "engine/kit/function.hpp"
#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

using support::short_code_text;

/// The place of a finite input between two neighbouring codes of the target.
struct neighbours {
  std::uint64_t lower;  ///< nearer to zero
  std::uint64_t upper;
  double part;  ///< the distance from `lower`, in units of their distance; 0.5 for a tie
};
/// Nothing if the input is a code of the target, or is beyond its finite numbers.
std::optional<neighbours> neighbours_of(const conversion_under_test& c, std::uint64_t input);

/// The wrong results of the smallest failing call, and the errors that explain all results.
std::string case_text(const conversion_under_test& c, const failed_call& failure);
/// What was wrong in the smallest failing call of a conversion, and how to repeat the case.
std::string failure_text(const conversion_under_test& c, const failed_call& failure);
/// The same of a quantizer.
std::string case_text(const quantizer_under_test& q, const failed_call& failure);
std::string failure_text(const quantizer_under_test& q, const failed_call& failure);

/// The wrong result of the smallest failing call of a function, the largest distance, and the errors.
std::string case_text(const function_under_test& f, const failed_call& failure);

/// The wrong scale or code of a quantizer.
quantize_counterexample wrong_of(const quantizer_under_test& q, const verdict& v);

}  // namespace samebits::testkit
