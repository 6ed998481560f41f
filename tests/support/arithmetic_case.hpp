// One operation under test: operands, rule, the oracle's result, and the text of a failure.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/inputs/operands.hpp"
#include "oracle/arithmetic.hpp"
#include "samebits/arithmetic.hpp"
#include "support/generators.hpp"

namespace samebits::support {

inline std::vector<operation> all_operations() {
  std::vector<operation> operations;
  for (int i = 0; i < enum_count<operation>; ++i) operations.push_back(static_cast<operation>(i));
  return operations;
}

struct arithmetic_case {
  operation op = operation::add;
  operands x = {};
  format_id to = format_id::fp32;
  cast_rule rule = {};
  random_bits random = {};  ///< stochastic only
  std::string where = "compute";
};

/// The exact result; it depends on rule.rounding for zero sums and rint, and on random for rint.
oracle::exact_outcome exact_result_of(const arithmetic_case& c);

/// What must come out.
oracle::rounded_result expected_result(const arithmetic_case& c);

/// Success if code and flags are as expected; else operands, got, expected and a C++ call.
::testing::AssertionResult same_result(const arithmetic_case& c, const arithmetic_result& got,
                                       const oracle::rounded_result& expected);

/// The case on one line, as RapidCheck shows it.
std::ostream& operator<<(std::ostream& out, const arithmetic_case& c);

/// Exact results rounded by a list of deterministic rules, each computed once.
class outcome_memo {
 public:
  outcome_memo(format_id to, std::vector<cast_rule> rules);

  /// One result per rule, in their order. The reference stays valid.
  const std::vector<oracle::rounded_result>& at(const oracle::exact_outcome& x);

  [[nodiscard]] const std::vector<cast_rule>& rules() const { return rules_; }
  [[nodiscard]] std::size_t size() const { return results_.size(); }

 private:
  using key = std::tuple<oracle::value_kind, bool, unsigned, int, oracle::cpp_int, oracle::cpp_int>;
  const oracle::format* to_;
  std::vector<cast_rule> rules_;
  std::map<key, std::vector<oracle::rounded_result>> results_;
};

}  // namespace samebits::support
