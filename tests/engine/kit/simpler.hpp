// Trials that are simpler than a failing one.
#pragma once

#include <vector>

#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

/// Fewer rows or columns, by tiles too, from either end; no offsets; with `zeros`, more zeros; then,
/// if few elements are not 0, simpler codes.
std::vector<trial> simpler_trials(format_id from, const matrix_shape& tile, bool zeros,
                                  const trial& t);

/// Shrinks a failing call of a function of elements: to the first of `alone`, which have the wrong
/// element and few others, or the call up to it that fails; then to simpler trials.
///
/// @param found  the first failure; it becomes the smallest one
trial shrunk_row(runner& calls, trial in, verdict& found, std::vector<trial> alone);

}  // namespace samebits::testkit
