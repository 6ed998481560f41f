// Attention by products and a softmax, as PyTorch's math path composes them.
#pragma once

#include "backends/dispatch/calls/attention.hpp"

namespace samebits::backends {

/// A checked call of attention_kernel::math.
void attention_math(const attention_call& call, const executor& where);

}  // namespace samebits::backends
