// The checks of stochastic rounding and of views that are not dense.
#pragma once

#include <functional>

#include "backends/verify/checks.hpp"

namespace samebits::backends::verification {

/// Per number of random bits: whole calls, and the same cut in uneven pieces; then column shards of
/// a larger tensor.
void check_stochastic(comparer& backends, const effort& much,
                      const std::function<void(const heading&)>& done);

/// Unaligned, padded, strided, transposed and repeating views, tails among them.
void check_views(comparer& backends, const std::function<void(const heading&)>& done);

}  // namespace samebits::backends::verification
