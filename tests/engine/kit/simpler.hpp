// Trials that are simpler than a failing one.
#pragma once

#include <vector>

#include "engine/kit/specifications.hpp"

namespace samebits::testkit {

/// Fewer rows or columns, by tiles too, from either end; no offsets; with `zeros`, more zeros; then,
/// if few elements are not 0, simpler codes.
std::vector<trial> simpler_trials(format_id from, const matrix_shape& tile, bool zeros,
                                  const trial& t);

}  // namespace samebits::testkit
