// Evaluates errors of quantizers on the results that the kit has seen.
#include "quantize_explain.hpp"

#include <algorithm>
#include <utility>

#include "scaled_elements.hpp"

namespace samebits::testkit {
namespace {

std::size_t wrong_results(const quantizer_under_test& q, const seen_quantize_call& call) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < call.got.codes.size(); ++i) {
    wrong += !is_right(q.to, q.nan, call.got.codes[i], call.expected.codes[i]);
  }
  for (std::size_t i = 0; i < call.got.scales.size(); ++i) {
    wrong += !is_right(q.scale_format, q.nan, call.got.scales[i], call.expected.scales[i]);
  }
  return wrong;
}

/// Returns whether a prediction is what the call returned.
bool is_predicted(const quantizer_under_test& q, const seen_quantize_call& call,
                  const quantized_codes& predicted) {
  for (std::size_t i = 0; i < call.got.codes.size(); ++i) {
    if (!is_right(q.to, q.nan, call.got.codes[i], predicted.codes[i])) return false;
  }
  const std::size_t scales = std::min(call.got.scales.size(), predicted.scales.size());
  for (std::size_t i = 0; i < scales; ++i) {
    if (!is_right(q.scale_format, q.nan, call.got.scales[i], predicted.scales[i])) return false;
  }
  return true;
}

/// Returns whether an error predicts all calls. `wrong` lists the failing calls, which are compared
/// first.
bool fits(const quantize_candidate& error, const quantizer_under_test& q,
          const std::vector<seen_quantize_call>& calls, const std::vector<std::size_t>& wrong) {
  std::size_t predicted = 0;
  for (const std::size_t k : wrong) {
    const auto result = error.result(calls[k]);
    if (!result) continue;
    if (!is_predicted(q, calls[k], *result)) return false;
    ++predicted;
  }
  if (predicted == 0) return false;
  for (const seen_quantize_call& call : calls) {
    const auto result = error.result(call);
    if (result && !is_predicted(q, call, *result)) return false;
  }
  return true;
}

/// Explains the codes as conversions of the scaled elements.
std::vector<std::string> explain_casts(const quantizer_under_test& q,
                                       const std::vector<seen_quantize_call>& calls) {
  std::vector<seen_call> casts;
  for (const seen_quantize_call& call : calls) {
    for (std::size_t i = 0; i < call.got.scales.size(); ++i) {
      if (!is_right(q.scale_format, q.nan, call.got.scales[i], call.expected.scales[i])) return {};
    }
    if (q.options.random.pitch) return {};  // random indices are not those of one array
    casts.push_back({scaled_elements(q, call.in), call.got.codes, call.expected.codes, 0,
                     call.in.codes.size()});
  }
  const quantize_options& o = q.options;
  std::vector<std::string> sentences = explain({.from = format_id::fp32,
                                                .to = q.to,
                                                .rule = {o.rounding, o.overflow, o.nan},
                                                .random = o.random,
                                                .nan = q.nan},
                                               casts)
                                           .sentences;
  for (std::string& s : sentences) s = "right scales; codes: " + s;
  return sentences;
}

}  // namespace

explanation explain_quantize(const quantizer_under_test& quantizer,
                             const std::vector<seen_quantize_call>& calls) {
  explanation result;
  std::vector<std::size_t> failing;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    const std::size_t wrong = wrong_results(quantizer, calls[k]);
    if (wrong > 0) failing.push_back(k);
    result.wrong += wrong;
    result.results += calls[k].got.codes.size() + calls[k].got.scales.size();
  }
  result.sentences = explain_casts(quantizer, calls);
  for (const quantize_candidate& error : quantize_candidates(quantizer)) {
    if (fits(error, quantizer, calls, failing)) result.sentences.push_back(error.sentence);
  }
  return result;
}

}  // namespace samebits::testkit
