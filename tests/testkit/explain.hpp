// Explains a failure: finds the usual errors that predict every result that the kit has seen.
//
// candidates() is one table with a row per error. Each row is a pure function from an input code,
// its position and its call to the code that a function with this error would return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samebits/testkit/conversion.hpp"

namespace samebits::testkit {

/// Codes of one call, or of a part of a call: inputs, results of the function under test, and right
/// results. The three vectors have the same size.
struct seen_call {
  std::vector<std::uint64_t> in;
  std::vector<std::uint64_t> got;
  std::vector<std::uint64_t> expected;
  std::uint64_t first = 0;  ///< position of in[0] in the call
  std::uint64_t count = 0;  ///< elements of the whole call
};

/// Element `i` of a call that the kit has seen.
struct seen_element {
  const conversion_under_test& conversion;
  const seen_call& call;
  std::size_t i;
};

/// One usual error. `code` returns the code that a function with this error writes to the element.
/// `code` returns nothing where the error leaves the element undefined, for example if the error
/// reads a neighbour beyond the end.
struct candidate {
  std::string sentence;  ///< completes "looks like: ..."
  std::function<std::optional<std::uint64_t>(const seen_element&)> code;
};

/// Returns the table of errors for a conversion. Rows may share a sentence: variants of one error.
std::vector<candidate> candidates(const conversion_under_test& conversion);

/// Returns whether a result is right: the expected code, or any NaN if `nan` and the expected code
/// allow any NaN.
bool is_right(format_id to, nan_result nan, std::uint64_t got, std::uint64_t expected);

/// The errors that predict all results, and the number of these results.
struct explanation {
  std::vector<std::string> sentences;  ///< in the order of the table; empty if no error fits
  std::size_t results = 0;
  std::size_t wrong = 0;

  /// Returns the line of a failure text: "looks like: ...".
  [[nodiscard]] std::string text() const;
};

/// Compares all results of some calls with every row of the table.
explanation explain(const conversion_under_test& conversion, const std::vector<seen_call>& calls);

}  // namespace samebits::testkit
