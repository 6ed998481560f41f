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

/// One usual error of quantizers. `result` returns what a quantizer with this error writes; nothing
/// where the call does not tell. A prediction with fewer scales leaves the others undefined.
struct quantize_candidate {
  std::string sentence;  ///< completes "looks like: ..."
  std::function<std::optional<quantized_codes>(const seen_quantize_call&)> result;
};

/// Returns the table of errors for a quantizer: other options, other places of scales, and parts of
/// the matrix outside of which all is right. Errors of the cast alone are rows of candidates().
std::vector<quantize_candidate> quantize_candidates(const quantizer_under_test& quantizer);

/// Compares all results with both tables. If every scale is right, the codes are explained as
/// conversions of the scaled elements from fp32.
explanation explain_quantize(const quantizer_under_test& quantizer,
                             const std::vector<seen_quantize_call>& calls);

}  // namespace samebits::testkit
