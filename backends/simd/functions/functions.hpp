// Functions of arrays on SIMD lanes: the kernel, and the scalar functions that lanes fall back to.
#pragma once

#include <cstdint>

#include "backends/dispatch/calls/attention.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/calls/sums.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"

namespace samebits::backends {

/// Kernels: function_codes of backends/dispatch/calls/evaluate.hpp; `exact` for the rule of this name,
/// `function` for all others. The AVX2 kernels need a processor with fused multiply-adds. The control
/// register must have its IEEE 754 state.
void avx2_function_codes(const evaluate_call& call, function_chunk& chunk, int count);
void avx512_function_codes(const evaluate_call& call, function_chunk& chunk, int count);
void avx2_exact_codes(const evaluate_call& call, function_chunk& chunk, int count);
void avx512_exact_codes(const evaluate_call& call, function_chunk& chunk, int count);

/// Kernels of functions of rows: row_kernel of backends/dispatch/calls/row_functions.hpp. The AVX2
/// kernel needs a processor with fused multiply-adds. The control register must have its IEEE 754
/// state.
void avx2_row(const row_task& task);
void avx512_row(const row_task& task);

/// Kernels of sums: sum_kernels of backends/dispatch/calls/sums.hpp. As above.
void avx2_add_codes(std::uint32_t* sums, const std::byte* codes, std::int64_t n, format_id format,
                    bool squares);
void avx512_add_codes(std::uint32_t* sums, const std::byte* codes, std::int64_t n, format_id format,
                      bool squares);
void avx2_add_products(std::uint32_t* weight, std::uint32_t* bias, const std::byte* grad,
                       const std::byte* x, std::int64_t n, format_id format,
                       const numerics::torch_2_11::row_statistics& of_row);
void avx512_add_products(std::uint32_t* weight, std::uint32_t* bias, const std::byte* grad,
                         const std::byte* x, std::int64_t n, format_id format,
                         const numerics::torch_2_11::row_statistics& of_row);

/// Kernels of attention: members of attention_kernels of backends/dispatch/calls/attention.hpp. As
/// above.
bool avx2_pack_attention_a(format_id format, const std::uint32_t* codes, std::uint32_t* words);
bool avx512_pack_attention_a(format_id format, const std::uint32_t* codes, std::uint32_t* words);
bool avx2_pack_attention_b(format_id format, const std::uint32_t* codes, std::uint32_t* words,
                           int column);
bool avx512_pack_attention_b(format_id format, const std::uint32_t* codes, std::uint32_t* words,
                             int column);
bool avx2_attention_block(const attention_block& b);
bool avx512_attention_block(const attention_block& b);
bool avx2_attention_gradients(const gradient_block& b);
bool avx512_attention_gradients(const gradient_block& b);

/// Kernels of binary32 chains: chain_kernel of backends/simd/matmul/matmul_kernel.hpp. As above.
void avx2_chains(const chain_panel& p);
void avx512_chains(const chain_panel& p);

// Compiled without instruction set flags.

/// angle[i], quadrant[i] = the quarter turns of x[i], for large[i] != 0.
void reduce_large_angles(const std::uint32_t* large, const std::uint32_t* x, std::uint32_t* angle,
                         std::uint32_t* quadrant, int count);
/// x[i] = lg2.approx.f32 of x[i].
void scalar_lg2_approx(std::uint32_t* x, int count);

}  // namespace samebits::backends
