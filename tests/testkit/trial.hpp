// One call of a function under test: how it is run, judged and shrunk, and the text of a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oracle/thresholds.hpp"
#include "samebits/testkit/conversion.hpp"
#include "support/conversion_case.hpp"
#include "support/sweep.hpp"

namespace samebits::testkit {

/// The source codes of one call and where its arrays start.
struct trial {
  std::vector<std::uint64_t> codes;
  int in_offset = 0;   ///< elements from a 256-byte border to in[0]
  int out_offset = 0;  ///< elements from a 256-byte border to out[0]
};

/// Trials simpler than this one: fewer elements, no offsets, then simpler codes.
std::vector<trial> simpler_trials(format_id from, const trial& t);

/// What one call did wrong; at most one member is set.
struct verdict {
  std::optional<counterexample> wrong;
  std::string trouble;  ///< it wrote where it must not, or judges disagree
  std::string thrown;   ///< what it threw

  [[nodiscard]] bool failed() const {
    return wrong.has_value() || !trouble.empty() || !thrown.empty();
  }
};

/// Runs trials of one function and judges them by the reference and by the oracle.
class trial_runner {
 public:
  /// Throws invalid_argument where function or conversion do not fit together.
  trial_runner(const conversion_under_test& conversion, const raw_function& function);

  [[nodiscard]] const conversion_under_test& conversion() const { return conversion_; }
  /// The conversion as a step function, where it has one: from fp32, not stochastic, to at most
  /// 20 bits of magnitude.
  [[nodiscard]] const std::optional<oracle::step_function>& steps() const { return steps_; }
  [[nodiscard]] std::uint64_t compared() const { return compared_; }

  /// One call with guards around both arrays.
  verdict run(const trial& t);
  /// `count` fp32 codes first, first + stride, ...: quicker than run(), without guards.
  verdict run_sequence(std::uint64_t first, std::uint64_t stride, std::size_t count);
  /// The result of a failed trial: shrunk and put into words. `stage` says how it was found.
  check_result failure(const trial& t, const verdict& found, const std::string& stage);

 private:
  [[nodiscard]] support::conversion_case case_of(std::uint64_t code, std::uint64_t position) const;
  [[nodiscard]] std::uint64_t oracle_code(const support::conversion_case& c) const;
  void reference_codes(const void* in, std::size_t count, void* out) const;
  /// Calls the function; the text of what it throws, or empty.
  std::string call(const raw_call& c) const;
  verdict judge(const trial& t, const std::vector<std::byte>& in_codes,
                const std::vector<std::byte>& out_codes);

  conversion_under_test conversion_;
  raw_function function_;
  std::optional<oracle::step_function> steps_;
  std::optional<support::code_steps> ordered_steps_;  ///< of steps_, for sequences
  std::uint64_t compared_ = 0;
};

}  // namespace samebits::testkit
