// Functions of arrays on SIMD lanes: the kernel, and the scalar functions that lanes fall back to.
#pragma once

#include <cstdint>

#include "backends/dispatch/calls/attention.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/calls/sums.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"

namespace samebits::backends {

/// Kernels of one instruction set for functions of rows and for what computes by rows. Those of AVX2
/// need a processor with fused multiply-adds. The control register must have its IEEE 754 state.
struct row_kernels {
  row_kernel row;
  sum_kernels sums;
  attention_kernels attention;
  chain_kernel chains;
};

// Compiled without instruction set flags.

/// angle[i], quadrant[i] = the quarter turns of x[i], for large[i] != 0.
void reduce_large_angles(const std::uint32_t* large, const std::uint32_t* x, std::uint32_t* angle,
                         std::uint32_t* quadrant, int count);
/// x[i] = lg2.approx.f32 of x[i].
void scalar_lg2_approx(std::uint32_t* x, int count);

}  // namespace samebits::backends
