// Binary32 chains: products that add in rising k, by multiplications and additions or fused.
#pragma once

#include "backends/dispatch/calls/matmul.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"

namespace samebits::backends {

/// Whether a call is supported: its accumulator is ieee_fp32 in a rising order.
bool supports_chains(const matmul_call& call);

/// Computes the product by a kernel, split among threads.
void multiply_chains(const matmul_call& call, const executor& where, chain_kernel kernel);

}  // namespace samebits::backends
