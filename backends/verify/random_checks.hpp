// Checks of stochastic rounding and of views that are not dense.
#pragma once

#include <functional>

#include "backends/verify/checks.hpp"

namespace samebits::backends::verification {

/// For each number of random bits, checks calls on whole rows, calls split into uneven parts, and
/// column shards of a larger tensor.
void check_stochastic(comparer& backends, const effort& much,
                      const std::function<void(const heading&)>& done);

/// Checks unaligned, padded, strided, transposed and repeating views, including partial vectors.
void check_views(comparer& backends, const std::function<void(const heading&)>& done);

}  // namespace samebits::backends::verification
