// Explains a failure: finds the usual errors that predict every result that was seen.
//
// A table has a row per error: a sentence, and the results that a function with this error gives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/kit/runner.hpp"

namespace samebits::testkit {

/// What an error predicts of a result; nothing for elements that the error leaves undefined, for
/// example if it reads a neighbour beyond the end.
using predicted_codes = std::vector<std::optional<std::uint64_t>>;
using prediction = std::vector<predicted_codes>;

/// One usual error. `of` returns nothing for a call that cannot show the error.
struct candidate {
  std::string sentence;  ///< completes "looks like: ..."
  std::function<std::optional<prediction>(const seen_call&)> of;
  bool only_alone = false;  ///< not named if an earlier row of the table fits
};

/// The prediction of results that are known.
prediction predict(const std::vector<code_list>& results);

/// The errors that predict all results, and the number of these results.
struct explanation {
  std::vector<std::string> sentences;  ///< in the order of the table; empty if no error fits
  std::size_t results = 0;
  std::size_t wrong = 0;
  /// Of functions: the codes between a wrong number and the right one, at most.
  std::optional<std::uint64_t> distance = {};

  /// Returns the line of a failure text: "looks like: ...".
  [[nodiscard]] std::string text() const;
};

/// Compares all results of some calls with every row of a table. Rows may share a sentence: variants
/// of one error.
explanation explain(const specification& what, const std::vector<seen_call>& calls,
                    const std::vector<candidate>& table);

}  // namespace samebits::testkit
