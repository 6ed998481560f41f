// Exact dot products of formats that fit fixed-point numbers: exact and fp32_per_128 without limbs.
#pragma once

#include "backends/dispatch/matmul.hpp"

namespace samebits::backends {

/// Whether the kind is one of those two and numbers of both operands have few enough bits in units
/// of their formats' last: fp16, FP8 and smaller, not bf16, tf32 and fp32.
bool takes_fixed_point(const matmul_call& call);

/// The product, shared among threads.
void multiply_fixed_point(const matmul_call& call, const executor& where);

}  // namespace samebits::backends
