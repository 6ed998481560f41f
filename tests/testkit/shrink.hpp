// Shrinks a failing call: finds a smaller call that also fails.
#pragma once

#include <vector>

#include "domain_codes.hpp"
#include "trial.hpp"

namespace samebits::testkit {

/// Returns trials simpler than `t`: fewer elements, no offsets, then simpler codes.
std::vector<trial> simpler_trials(format_id from, const trial& t);

/// A failing call and its errors.
struct failing_trial {
  trial call;
  verdict errors;
};

/// Runs smaller and simpler calls as long as they fail, and returns the last call that failed.
/// Calls contain only codes of the domain. If the function threw, `found` is returned unchanged: a
/// call that throws may not be repeatable.
failing_trial shrunk(trial_runner& runner, const domain_codes& domain, failing_trial found);

}  // namespace samebits::testkit
