// Problems of an operation as a RapidCheck property: RapidCheck draws batches and shrinks a failing
// one. The only file that includes RapidCheck for problems.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "engine/cases/operations.hpp"
#include "engine/core/compare.hpp"
#include "engine/core/shrink.hpp"
#include "support/backends.hpp"
#include "support/effort.hpp"
#include "support/property.hpp"

namespace samebits::support {

/// Problems that are copied to a target together.
struct problem_batch {
  std::vector<shrinking_problem> problems;
  const bool* enough;  ///< whether shrinking ends
};

inline std::ostream& operator<<(std::ostream& out, const problem_batch& batch) {
  for (const shrinking_problem& p : batch.problems) out << p.what.what->text() << "\n";
  return out;
}

/// Half of a batch, or a simpler problem than the only one.
class simpler_batches {
 public:
  explicit simpler_batches(problem_batch from) : from_(std::move(from)) {
    if (from_.problems.size() == 1) simpler_.emplace(from_.problems[0]);
  }
  rc::Maybe<rc::Shrinkable<problem_batch>> operator()();

 private:
  problem_batch from_;
  int half_ = 0;
  std::optional<simpler_problems> simpler_ = std::nullopt;
};

inline rc::Shrinkable<problem_batch> shrinkable_batch(problem_batch batch) {
  return rc::shrinkable::shrink(rc::fn::constant(std::move(batch)), [](problem_batch from) {
    return rc::makeSeq<simpler_batches>(std::move(from));
  });
}

inline rc::Maybe<rc::Shrinkable<problem_batch>> simpler_batches::operator()() {
  if (*from_.enough) return rc::Nothing;
  if (simpler_) {
    if (auto next = simpler_->next()) {
      return shrinkable_batch({{std::move(*next)}, from_.enough});
    }
    return rc::Nothing;
  }
  if (half_ == 2) return rc::Nothing;
  const auto middle =
      from_.problems.begin() + static_cast<std::ptrdiff_t>(from_.problems.size() / 2);
  return shrinkable_batch(half_++ == 0
                              ? problem_batch{{from_.problems.begin(), middle}, from_.enough}
                              : problem_batch{{middle, from_.problems.end()}, from_.enough});
}

/// Problems number first, first + 1, ...: each is drawn from its own seed, which is its number. One in
/// four has other bytes around its elements and in its results than the guards.
inline rc::Gen<problem_batch> problem_batches(const array_operation& op, std::uint64_t first,
                                              std::size_t count, const bool& enough) {
  return [&op, first, count, &enough](const rc::Random&, int) {
    problem_batch batch{std::vector<shrinking_problem>(count), &enough};
    for_each_of(count, [&](std::size_t i) {
      rc::Random random(first + i);
      const word_source next = [&random] { return random.next(); };
      problem& p = batch.problems[i].what;
      p.seed = first + i;
      p.what = op.draw(first + i, next);
      constexpr std::uint8_t fills[] = {0x00, 0xFF, 0x7F, 0x3C};
      if (below(4, next) == 0) p.fill = std::byte{one_of(fills, next)};
    });
    return shrinkable_batch(std::move(batch));
  };
}

struct check_effort {
  std::uint64_t cases = 0;
  std::uint64_t seed = 0;  ///< case i is drawn from seed + i
  bool shrinks = true;
  /// Shrinking ends after comparing so many elements: a large case may fail only while it is large.
  std::uint64_t shrinking_elements = std::uint64_t{1} << 27;
};

/// What a check showed.
struct check_report {
  std::uint64_t cases = 0;
  std::uint64_t elements = 0;          ///< of all buffers, compared with the judge's
  std::string failure = {};            ///< empty if nothing differs
  std::vector<problem> smallest = {};  ///< the failing problem, shrunk; more if none fails alone
};

/// Draws cases and compares the target with the judge; ends with the first that fails. The failure
/// says which bytes or returned values differ, the smallest failing case with the codes of its
/// buffers, and how to repeat it.
inline check_report check_operation(const array_operation& op, array_target& target,
                                    const check_effort& effort, const array_target& judge) {
  check_report report;
  int shrinks_left = 4000;
  std::uint64_t shrinking_elements = 0;
  bool enough = !effort.shrinks;
  const auto run = [&](const problem_batch& batch) {
    std::vector<problem> problems;
    for (const shrinking_problem& p : batch.problems) problems.push_back(p.what);
    const comparison found = compare(problems, target, judge);
    if (report.smallest.empty()) {
      report.elements += found.elements;
    } else {
      shrinking_elements += found.elements;
      enough = --shrinks_left == 0 || shrinking_elements >= effort.shrinking_elements;
    }
    if (found.text.empty()) return;
    report.smallest = std::move(problems);
    report.failure = found.text;
    RC_FAIL(found.text);
  };
  while (report.cases < effort.cases && report.failure.empty()) {
    const auto count = std::min<std::uint64_t>(op.batch, effort.cases - report.cases);
    const std::uint64_t first = effort.seed + report.cases;
    const auto generator = problem_batches(op, first, static_cast<std::size_t>(count), enough);
    rc::detail::TestParams params;
    params.seed = first;
    params.maxSuccess = 1;
    detail::quiet_listener listener;
    const rc::detail::TestResult result = rc::detail::checkProperty(
        rc::detail::toProperty([&] { run(*generator); }), {}, params, listener);
    report.cases += count;
    if (!report.failure.empty() || result.is<rc::detail::SuccessResult>()) continue;
    std::ostringstream text;  // nothing was compared: a case cannot be drawn, or the judge throws
    rc::detail::printResultMessage(result, text);
    report.failure = op.name + ": cases from seed " + std::to_string(first) + " on: " + text.str();
    return report;
  }
  if (report.failure.empty()) return report;
  const bool alone = report.smallest.size() == 1;
  const problem& p = report.smallest[0];
  report.failure = op.name + " on " + std::string(target.backend()) + ": " + report.failure +
                   (alone ? "\n  smallest failing case: "
                          : "\n  in a batch only, not alone, which begins with: ") +
                   p.what->text() + (alone ? codes_text(p) : "") +
                   "\n  repeat with: RC_PARAMS=\"seed=" + std::to_string(p.seed) +
                   " max_success=" + std::to_string(report.smallest.size()) + "\"";
  return report;
}

/// The same as a GoogleTest expectation, of `cases` cases or all of a list, unless RC_PARAMS says
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
