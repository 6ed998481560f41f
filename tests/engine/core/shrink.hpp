// The search for a simpler problem that fails, too, and the texts of problems.
#pragma once

#include <functional>
#include <string>

#include "engine/core/problem.hpp"

namespace samebits::support {

/// Whether a problem fails, and whether the search goes on.
struct attempt {
  bool fails;
  bool goes_on;
};

/// Makes a failing problem simpler, change by change, as long as it fails: first simpler cases; then
/// zeros in ranges of elements, which halve; then one element after another.
problem shrunk(problem failing, const std::function<attempt(const problem&)>& attempt_of);

/// The codes of given buffers: all of a small one, else those that are not 0.
std::string codes_text(const problem& p);

}  // namespace samebits::support
