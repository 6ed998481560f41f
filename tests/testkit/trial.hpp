// Runs one call of a function under test, compares its results with reference and oracle, and
// keeps the results for the explanation of a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "explain.hpp"
#include "oracle/thresholds.hpp"
#include "samebits/testkit/conversion.hpp"
#include "support/conversion_case.hpp"
#include "support/sweep.hpp"

namespace samebits::testkit {

/// The source codes of one call, and the offsets of its arrays.
struct trial {
  std::vector<std::uint64_t> codes;
  int in_offset = 0;   ///< elements from a 256-byte border to in[0]
  int out_offset = 0;  ///< elements from a 256-byte border to out[0]
};

/// Errors of one call; at most one of wrong, trouble and thrown is set.
struct verdict {
  std::optional<counterexample> wrong;  ///< the first wrong element
  std::size_t wrong_count = 0;          ///< number of wrong elements
  std::string trouble;  ///< the function wrote outside its output, or reference and oracle disagree
  std::string thrown;   ///< text of the exception that the function threw

  [[nodiscard]] bool failed() const {
    return wrong.has_value() || !trouble.empty() || !thrown.empty();
  }
};

/// Runs trials of one function and compares the results with the reference and the oracle.
class trial_runner {
 public:
  /// @throws invalid_argument if function and conversion do not match.
  trial_runner(const conversion_under_test& conversion, const raw_function& function);

  [[nodiscard]] const conversion_under_test& conversion() const { return conversion_; }
  /// Returns the conversion as a step function. Present for conversions from fp32, not stochastic,
  /// to at most 20 bits of magnitude.
  [[nodiscard]] const std::optional<oracle::step_function>& steps() const { return steps_; }
  [[nodiscard]] std::uint64_t compared() const { return compared_; }
  /// Returns the results of the calls so far: at most max_seen elements, the first calls and every
  /// failing one.
  [[nodiscard]] const std::vector<seen_call>& seen() const { return seen_; }
  /// Returns whether seen() keeps the results of further calls that do not fail.
  [[nodiscard]] bool keeps_more() const { return seen_elements_ < max_seen; }
  /// Returns the case of one element of a call, for texts and the oracle.
  [[nodiscard]] support::conversion_case case_of(std::uint64_t code, std::uint64_t position) const;

  /// Runs one call with guards around both arrays.
  verdict run(const trial& t);
  /// Runs `count` fp32 codes first, first + stride, ...: faster than run(), without checks of the
  /// guards.
  verdict run_sequence(std::uint64_t first, std::uint64_t stride, std::size_t count);

 private:
  static constexpr std::size_t max_seen = std::size_t{1} << 20;

  [[nodiscard]] std::uint64_t oracle_code(const support::conversion_case& c) const;
  void reference_codes(const void* in, std::size_t count, void* out) const;
  /// Calls the function. Returns the text of its exception, or an empty text.
  std::string call(const raw_call& c) const;
  verdict compared(const trial& t, seen_call results);
  verdict compared_sequence(const seen_call& results);
  [[nodiscard]] counterexample wrong_element(const trial& t, const seen_call& results,
                                             std::size_t i) const;
  void keep(seen_call results, bool failed);

  conversion_under_test conversion_;
  raw_function function_;
  std::optional<oracle::step_function> steps_;
  std::optional<support::code_steps> ordered_steps_;  ///< steps_ in order, for sequences
  std::uint64_t compared_ = 0;
  std::vector<seen_call> seen_;
  std::size_t seen_elements_ = 0;
};

}  // namespace samebits::testkit
