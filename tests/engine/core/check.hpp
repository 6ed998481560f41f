// Checks an operation: random cases on a target against a judge, and the smallest case that fails.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/core/problem.hpp"

namespace samebits::support {

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

/// The problem of a seed. One in four has other bytes around its elements and in its results than the
/// guards.
problem draw_problem(const array_operation& op, std::uint64_t seed);

/// Draws cases and compares the target with the judge; ends with the first that fails. The failure
/// says which bytes or returned values differ, the smallest failing case with the codes of its
/// buffers, and how to repeat it.
check_report check_operation(const array_operation& op, array_target& target,
                             const check_effort& effort, const array_target& judge);

}  // namespace samebits::support
