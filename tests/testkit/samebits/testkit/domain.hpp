// The inputs that a function under test must support, and what counts as right for a NaN.
//
//   check_conversion({.to = e4m3, .domain = {.nan = false, .infinite = false}}, my_kernel);
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "samebits/core/format.hpp"

namespace samebits::testkit {

/// Inputs of a function under test. A check passes no other input to the function. The default is
/// every code.
struct input_domain {
  bool nan = true;        ///< NaNs are inputs
  bool infinite = true;   ///< +Inf and -Inf are inputs
  bool subnormal = true;  ///< subnormal numbers are inputs
  bool negative = true;   ///< numbers with a minus sign are inputs, -0 included
  double smallest = 0;    ///< min magnitude of a finite input other than 0
  double largest = std::numeric_limits<double>::infinity();  ///< max magnitude of a finite input
  /// If set: an input is a code for which this function returns true. Must be pure.
  std::function<bool(std::uint64_t code)> accepts = {};
  /// If set: called with codes before `accepts` is called with each of them, for an `accepts` that
  /// decides about many codes at once.
  std::function<void(std::span<const std::uint64_t> codes)> prepare = {};
  std::vector<std::uint64_t> codes = {};  ///< if not empty: no other code is an input

  /// Returns whether every member has its default: every code is an input.
  [[nodiscard]] bool is_everything() const;
  /// Returns whether a code of the format satisfies every member.
  [[nodiscard]] bool contains(format_id format, std::uint64_t code) const;
};

/// The codes that are right where the expected result is a NaN.
enum class nan_result : std::uint8_t {
  any,      ///< every NaN code of the format
  by_rule,  ///< only the code that the rule's nan_policy gives
};

}  // namespace samebits::testkit
