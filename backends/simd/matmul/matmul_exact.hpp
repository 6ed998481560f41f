// Exact dot products in fixed point: `exact` and fp32_per_128 for formats narrow enough to need no
// limbs.
#pragma once

#include "backends/dispatch/calls/matmul.hpp"

namespace samebits::backends {

/// Whether a call is supported. Its accumulator must be `exact` or fp32_per_128. The numbers of
/// both operand formats must have few enough bits in units of their last bit: fp16, FP8 and smaller
/// do; bf16, tf32 and fp32 do not.
bool supports_fixed_point(const matmul_call& call);

/// Computes the product, split among threads.
void multiply_fixed_point(const matmul_call& call, const executor& where);

}  // namespace samebits::backends
