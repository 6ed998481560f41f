// Calls of a function under test, whose arrays lie between guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/kit/guarded_array.hpp"
#include "samebits/core/format.hpp"
#include "samebits/testkit/domain.hpp"

namespace samebits::testkit {

using code_list = std::vector<std::uint64_t>;

/// The input of a call: the codes of a row-major matrix, and where arrays begin.
struct trial {
  std::int64_t rows = 1;
  std::int64_t cols = 0;
  code_list codes;
  int in_offset = 0;   ///< elements from a 256-byte border to the input
  int out_offset = 0;  ///< elements from a 256-byte border to each result
};
/// A row of codes.
inline trial row_of(code_list codes, int in_offset = 0, int out_offset = 0) {
  const auto cols = static_cast<std::int64_t>(codes.size());
  return {1, cols, std::move(codes), in_offset, out_offset};
}

/// Reads arrays[0], which holds the codes of the trial, and writes the others.
using array_function = std::function<void(const trial& in, std::span<guarded_array> arrays)>;

/// A result of a function: its name in texts, its format, and the number of its elements.
struct result_kind {
  const char* name;
  format_id format;
  std::function<std::size_t(const trial&)> count;
};

/// The specification of a function under test.
struct specification {
  format_id from;
  std::vector<result_kind> results;
  nan_result nan;
  input_domain domain;
  array_function reference;

  /// Whether a code of result `r` is right: the expected code or, if the specification allows any
  /// NaN and expects one, any NaN.
  [[nodiscard]] bool is_right(std::size_t r, std::uint64_t got, std::uint64_t expected) const;
  /// The arrays of a call, whose results are not written yet.
  [[nodiscard]] std::vector<guarded_array> arrays_of(const trial& in) const;
  /// The results that a function gives.
  [[nodiscard]] std::vector<code_list> results_of(const array_function& f, const trial& in) const;
};

/// One call that was made.
struct seen_call {
  trial in;
  std::vector<code_list> got;
  std::vector<code_list> expected;
};

/// Errors of one call; at most one of wrong, trouble and thrown is set.
struct verdict {
  /// A wrong element: number of the result, number of the element.
  struct position {
    std::size_t result;
    std::size_t element;
  };
  std::optional<position> wrong;          ///< the first of the first result that has one
  std::vector<std::size_t> wrong_counts;  ///< of each result
  std::string trouble;  ///< the function wrote elsewhere, or nothing says what is right
  std::string thrown;   ///< text of the exception that the function threw
  seen_call call;       ///< its results, if any is wrong

  [[nodiscard]] bool failed() const {
    return wrong.has_value() || !trouble.empty() || !thrown.empty();
  }
};

/// Makes calls of one function under test, and keeps their results to explain a failure.
class runner {
 public:
  /// Says what is wrong with right results of a call; empty: nothing.
  using opinion = std::function<std::string(const seen_call&)>;

  runner(const specification& what, array_function function, opinion second = {});

  [[nodiscard]] const specification& what() const { return what_; }
  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  /// At most max_seen elements: the first calls and every failing one.
  [[nodiscard]] const std::vector<seen_call>& seen() const { return seen_; }
  /// Whether seen() keeps the results of further calls that do not fail.
  [[nodiscard]] bool keeps_more() const { return seen_elements_ < max_seen; }

  /// Takes right results from elsewhere, where they are the same.
  void set_reference(const array_function& reference) { what_.reference = reference; }

  verdict run(const trial& in);
  /// Runs simpler trials as long as they fail, and returns the last one that did. If the function
  /// throws, it is not called again: a call that throws may not be repeatable.
  ///
  /// @param found  the first failure; it becomes the smallest one
  /// @param simpler  trials that are simpler than one
  trial shrink(trial in, verdict& found,
               const std::function<std::vector<trial>(const trial&)>& simpler);

 private:
  static constexpr std::size_t max_seen = std::size_t{1} << 20;  // elements
  static constexpr int max_shrinking = 10'000;                   // calls

  verdict judge(const trial& in, std::span<guarded_array> got, std::span<guarded_array> expected);

  specification what_;
  array_function function_;
  opinion second_;
  std::uint64_t compared_ = 0;
  std::vector<seen_call> seen_;
  std::size_t seen_elements_ = 0;
};

/// Throws invalid_argument unless an element has as many bytes as a code of the format. `what`:
/// "in of the function under test".
void require_element_size(const std::string& what, std::size_t got, format_id format);

/// The seed that the environment asks for, RC_PARAMS="seed=N", or a new one.
std::uint64_t new_seed();

}  // namespace samebits::testkit
