// Checks of operations as GoogleTest expectations. RC_PARAMS says how many cases, and from which seed,
// as in RapidCheck's properties.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "engine/cases/operations.hpp"
#include "engine/core/check.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"

namespace samebits::support {

/// check_operation() as a GoogleTest expectation, of `cases` cases or all of a list, unless RC_PARAMS says
/// otherwise; prints how many were compared.
inline void expect_same(const array_operation& op, array_target& target, const array_target& judge,
                        int cases, const char* file = __builtin_FILE(),
                        int line = __builtin_LINE()) {
  const rc::detail::TestParams params = rc::detail::configuration().testParams;
  const bool told = params.maxSuccess != rc::detail::TestParams{}.maxSuccess;
  check_effort effort{static_cast<std::uint64_t>(cases) / effort_divisor, params.seed,
                      !params.disableShrinking};
  if (op.listed != 0) effort.cases = op.listed, effort.seed = told ? params.seed : 0;
  if (told) effort.cases = static_cast<std::uint64_t>(params.maxSuccess);
  const auto begin = std::chrono::steady_clock::now();
  const check_report report = check_operation(op, target, effort, judge);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << op.name << " on " << target.backend() << ": " << report.cases << " cases, "
            << report.elements << " elements compared with " << judge.backend() << ", "
            << took.count() << " s\n";
  if (report.failure.empty()) return;
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  ADD_FAILURE_AT(file, line) << report.failure << " and --gtest_filter=" << test->test_suite_name()
                             << "." << test->name();
}

/// The judge is the reference backend.
inline void expect_as_reference(const array_operation& op, array_target& target, int cases,
                                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  expect_same(op, target, *host_target("reference"), cases, file, line);
}

/// Under the smallest effort every `step`-th of the cases. A prime step that divides no count of the
/// loops that made them leaves out no value of any loop.
template <class Case>
std::vector<Case> thinned(std::vector<Case> cases, std::size_t step) {
  std::vector<Case> some;
  for (std::size_t i = 0; i < cases.size(); i += by_effort<std::size_t>(1, step)) {
    some.push_back(std::move(cases[i]));
  }
  return some;
}

/// All calls on lists, for INSTANTIATE_TEST_SUITE_P.
inline auto list_calls() {
  std::vector<list_call> all;
  for (int i = 0; i < list_call_count; ++i) all.push_back(static_cast<list_call>(i));
  return ::testing::ValuesIn(all);
}
inline std::string name_of_list_call(const ::testing::TestParamInfo<list_call>& tested) {
  return std::string(name(tested.param));
}

/// Every host backend against the operation's own judge, or the reference.
inline void expect_on_hosts(const array_operation& op, int cases,
                            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const auto reference = host_target("reference");
  for (const std::string& backend : supported_backends()) {
    expect_same(op, *host_target(backend), op.judge ? *op.judge : *reference, cases, file, line);
  }
}

/// Every host backend against calls of another kind.
template <class Case>
void expect_on_hosts(const array_operation& op, const char* judge,
                     returned_values (*expected)(const Case&, const call_site&), int cases,
                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  for (const std::string& backend : supported_backends()) {
    expect_same(op, *host_target(backend), function_target<Case>(judge, expected), cases, file,
                line);
  }
}

}  // namespace samebits::support
