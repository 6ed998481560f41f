// Compares tables of usual errors with results that were seen.
#include "engine/explain/fit.hpp"

#include <algorithm>

namespace samebits::testkit {
namespace {

constexpr std::size_t max_named = 3;  // sentences in one text

std::size_t wrong_results(const specification& what, const seen_call& call) {
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < call.got.size(); ++r) {
    for (std::size_t i = 0; i < call.got[r].size(); ++i) {
      wrong += !what.is_right(r, call.got[r][i], call.expected[r][i]);
    }
  }
  return wrong;
}

/// The number of wrong results that the error predicts; nothing if it predicts one that is not so.
std::optional<std::size_t> explained(const candidate& error, const specification& what,
                                     const seen_call& call) {
  const std::optional<prediction> predicted = error.of(call);
  if (!predicted) return 0;
  std::size_t wrong = 0;
  for (std::size_t r = 0; r < call.got.size(); ++r) {
    const predicted_codes& codes = (*predicted)[r];
    for (std::size_t i = 0; i < std::min(codes.size(), call.got[r].size()); ++i) {
      if (!codes[i]) continue;
      const std::uint64_t got = call.got[r][i];
      if (!what.is_right(r, got, *codes[i])) return std::nullopt;
      wrong += !what.is_right(r, got, call.expected[r][i]);
    }
  }
  return wrong;
}

/// Whether an error predicts all results, among them a wrong one. Small failing calls, which most
/// errors do not explain, come first.
bool fits(const candidate& error, const specification& what,
          const std::vector<const seen_call*>& calls) {
  std::size_t wrong = 0;
  for (const seen_call* call : calls) {
    const std::optional<std::size_t> of_call = explained(error, what, *call);
    if (!of_call) return false;
    wrong += *of_call;
  }
  return wrong > 0;
}

}  // namespace

prediction predict(const std::vector<code_list>& results) {
  prediction all;
  for (const code_list& codes : results) all.emplace_back(codes.begin(), codes.end());
  return all;
}

explanation explain(const specification& what, const std::vector<seen_call>& calls,
                    const std::vector<candidate>& table) {
  explanation result;
  std::vector<const seen_call*> failing, others;
  for (const seen_call& call : calls) {
    const std::size_t wrong = wrong_results(what, call);
    result.wrong += wrong;
    for (const code_list& codes : call.got) result.results += codes.size();
    (wrong > 0 ? failing : others).push_back(&call);
  }
  std::stable_sort(failing.begin(), failing.end(), [](const seen_call* a, const seen_call* b) {
    return a->in.codes.size() < b->in.codes.size();
  });
  failing.insert(failing.end(), others.begin(), others.end());
  for (const candidate& error : table) {
    const auto end = result.sentences.end();
    if (error.only_alone && !result.sentences.empty()) continue;
    if (std::find(result.sentences.begin(), end, error.sentence) != end) continue;
    if (fits(error, what, failing)) result.sentences.push_back(error.sentence);
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
