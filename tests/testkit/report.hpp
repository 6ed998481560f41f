// The text of a failed check.
#pragma once

#include <string>

#include "explain.hpp"
#include "shrink.hpp"
#include "trial.hpp"

namespace samebits::testkit {

/// Returns the text of a failure: what was wrong in the smallest failing call, the errors that
/// explain all results, and how to repeat the case.
///
/// @param runner  the runner that ran the call
/// @param failed  the smallest failing call
/// @param why  shown only if an element is wrong
/// @param how  which stage found the failure, and after how many results
std::string failure_text(const trial_runner& runner, const failing_trial& failed,
                         const explanation& why, const std::string& how);

/// Returns a code and its value in a few characters, such as "0x01 = 0.001953125".
std::string short_code_text(format_id format, std::uint64_t code);

}  // namespace samebits::testkit
