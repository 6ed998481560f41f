// Evaluates the table of usual errors on the results that the kit has seen.
#include "explain.hpp"

#include <algorithm>

#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

constexpr std::size_t max_named = 3;  // sentences in one text

/// Position of an element: number of the call, number of the element.
struct element_position {
  std::size_t call;
  std::size_t element;
};

/// Returns the positions of all wrong elements.
std::vector<element_position> wrong_elements(const conversion_under_test& conversion,
                                             const std::vector<seen_call>& calls) {
  std::vector<element_position> wrong;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    for (std::size_t i = 0; i < calls[k].in.size(); ++i) {
      if (!is_right(conversion.to, conversion.nan, calls[k].got[i], calls[k].expected[i])) {
        wrong.push_back({k, i});
      }
    }
  }
  return wrong;
}

/// Returns whether an error predicts all wrong results, at least one of them with a code, and then
/// all other results.
bool fits(const candidate& error, const conversion_under_test& conversion,
          const std::vector<seen_call>& calls, const std::vector<element_position>& wrong) {
  std::size_t predicted = 0;
  for (const element_position& p : wrong) {
    const seen_call& call = calls[p.call];
    const auto code = error.code({conversion, call, p.element});
    if (!code) continue;
    if (!is_right(conversion.to, conversion.nan, call.got[p.element], *code)) return false;
    ++predicted;
  }
  if (predicted == 0) return false;
  for (const seen_call& call : calls) {
    for (std::size_t i = 0; i < call.in.size(); ++i) {
      const auto code = error.code({conversion, call, i});
      if (code && !is_right(conversion.to, conversion.nan, call.got[i], *code)) return false;
    }
  }
  return true;
}

}  // namespace

bool is_right(format_id to, nan_result nan, std::uint64_t got, std::uint64_t expected) {
  if (got == expected) return true;
  return nan == nan_result::any && is_nan(to, expected) && is_nan(to, got);
}

explanation explain(const conversion_under_test& conversion, const std::vector<seen_call>& calls) {
  explanation result;
  for (const seen_call& call : calls) result.results += call.in.size();
  const std::vector<element_position> wrong = wrong_elements(conversion, calls);
  result.wrong = wrong.size();
  for (const candidate& error : candidates(conversion)) {
    const auto end = result.sentences.end();
    if (std::find(result.sentences.begin(), end, error.sentence) != end) continue;
    if (fits(error, conversion, calls, wrong)) result.sentences.push_back(error.sentence);
  }
  return result;
}

std::string explanation::text() const {
  const std::string evidence =
      "all " + std::to_string(results) + " results seen, " + std::to_string(wrong) + " wrong";
  if (sentences.empty()) {
    return "looks like: none of the usual errors (none fits " + evidence + ")";
  }
  std::string text = "looks like: ";
  for (std::size_t i = 0; i < std::min(sentences.size(), max_named); ++i) {
    text += (i == 0 ? "" : "; or ") + sentences[i];
  }
  return text + " (fits " + evidence + ")";
}

}  // namespace samebits::testkit
