// Exact dot products in fixed point: `exact` and fp32_per_128, without limbs for every product.
#pragma once

#include "backends/dispatch/calls/matmul.hpp"

namespace samebits::backends {

/// Whether a call is supported: its accumulator is `exact` or fp32_per_128.
bool supports_fixed_point(const matmul_call& call);

/// Computes the product, split among threads.
void multiply_fixed_point(const matmul_call& call, const executor& where);

}  // namespace samebits::backends
