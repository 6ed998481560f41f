// Explains a failed check of a quantizer: finds the usual errors that predict all codes and scales
// that the kit has seen.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain.hpp"
#include "quantize_trial.hpp"

namespace samebits::testkit {

/// One usual error of quantizers. `result` returns what a quantizer with this error writes, or
/// nothing for a call that cannot show the error. If the result has fewer scales than the call, the
/// error leaves the remaining scales undefined.
struct quantize_candidate {
  std::string sentence;  ///< completes "looks like: ..."
  std::function<std::optional<quantized_codes>(const seen_quantize_call&)> result;
};

/// Returns the table of errors for a quantizer: other options, scales at other positions, and
/// errors in one part of the matrix only. Errors of the cast alone are rows of candidates().
std::vector<quantize_candidate> quantize_candidates(const quantizer_under_test& quantizer);

/// Compares all results with both tables. If every scale is right, the codes are explained as
/// conversions of the scaled elements from fp32.
explanation explain_quantize(const quantizer_under_test& quantizer,
                             const std::vector<seen_quantize_call>& calls);

}  // namespace samebits::testkit
