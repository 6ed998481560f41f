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

/// Kernels: function_codes of backends/dispatch/calls/evaluate.hpp; `exact` for the rule of this name,
/// `function` for all others; `fused`: fused_codes of backends/dispatch/calls/fused.hpp. The AVX2 kernels need a processor with fused multiply-adds. The control
/// register must have its IEEE 754 state.
void avx2_function_codes(const evaluate_call& call, function_chunk& chunk, int count);
void avx512_function_codes(const evaluate_call& call, function_chunk& chunk, int count);
void avx2_fused_codes(const fused_call& call, fused_chunk& chunk, int count);
void avx512_fused_codes(const fused_call& call, fused_chunk& chunk, int count);
void avx2_exact_codes(const evaluate_call& call, function_chunk& chunk, int count);
void avx512_exact_codes(const evaluate_call& call, function_chunk& chunk, int count);

/// Kernels of one instruction set for functions of rows and for what computes by rows. Those of AVX2
/// need a processor with fused multiply-adds. The control register must have its IEEE 754 state.
struct row_kernels {
  row_kernel row;
  sum_kernels sums;             ///< without in_scope
  attention_kernels attention;  ///< without multiply
  chain_kernel chains;
};
extern const row_kernels avx2_rows;
extern const row_kernels avx512_rows;

// Compiled without instruction set flags.

/// angle[i], quadrant[i] = the quarter turns of x[i], for large[i] != 0.
void reduce_large_angles(const std::uint32_t* large, const std::uint32_t* x, std::uint32_t* angle,
                         std::uint32_t* quadrant, int count);
/// x[i] = lg2.approx.f32 of x[i].
void scalar_lg2_approx(std::uint32_t* x, int count);

}  // namespace samebits::backends
