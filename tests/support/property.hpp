// Runs a RapidCheck property inside a GoogleTest test, with as many cases as it can afford.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <sstream>
#include <string>
#include <utility>

#include "support/effort.hpp"

namespace samebits::support {

namespace detail {
/// RapidCheck's own listener prints at exit what failed, which tests of failures must not.
class quiet_listener : public rc::detail::TestListener {
 public:
  void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
  void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
  void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
};
}  // namespace detail

/// Checks a property over `count` generated cases (RapidCheck's default is 100, whatever a case
/// costs); fewer where instrumentation makes them dear. A max_success in RC_PARAMS other than 100
/// has the last word. The seed differs from run to run; a failure names the one to repeat.
///
///   expect_holds("monotone", 20000, [] { const auto c = *cases(space); ... });
template <class Property>
::testing::AssertionResult holds(const std::string& description, int count, Property&& property) {
  rc::detail::TestMetadata metadata;
  metadata.id = description;
  metadata.description = description;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  if (params.maxSuccess == rc::detail::TestParams{}.maxSuccess) {
    params.maxSuccess = count / static_cast<int>(effort_divisor);
  }
  detail::quiet_listener listener;
  const rc::detail::TestResult result = rc::detail::checkProperty(
      rc::detail::toProperty(std::forward<Property>(property)), metadata, params, listener);
  if (result.is<rc::detail::SuccessResult>()) return ::testing::AssertionSuccess();
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  return ::testing::AssertionFailure()
         << description << ": " << text.str() << "\n  repeat with: RC_PARAMS=\"seed=" << params.seed
         << " max_success=" << params.maxSuccess << "\"";
}

/// Adds a GoogleTest failure at the caller's line unless the property holds.
template <class Property>
void expect_holds(const std::string& description, int count, Property&& property,
                  const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const auto result = holds(description, count, std::forward<Property>(property));
  if (!result) ADD_FAILURE_AT(file, line) << result.message();
}

/// Fails the current RapidCheck case with the text of an assertion that does not hold.
inline void require(const ::testing::AssertionResult& result) {
  if (!result) RC_FAIL(std::string(result.message()));
}

}  // namespace samebits::support
