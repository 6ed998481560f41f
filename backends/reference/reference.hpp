// The reference backend: plain loops over the definition in numerics/.
#pragma once

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "backends/dispatch/calls/attention.hpp"
#include "backends/dispatch/calls/codebook.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "backends/dispatch/calls/row_functions.hpp"
#include "backends/dispatch/calls/sums.hpp"

namespace samebits::backends {

struct update_kernels;  // backends/dispatch/calls/optimizer.hpp

extern const backend reference;
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): decision 0009
extern self_test_entry reference_self_test;

// Functions of operation entries; simd uses them for the calls that its kernels do not support.
void reference_convert(const convert_call& call, element_range range);
flags reference_compute(const compute_call& call, element_range range);
/// Functions of arrays and fused elements by a kernel; several threads call it at once.
void evaluate_on_threads(const evaluate_call& call, const executor& where, function_codes codes,
                         kernel_scope scope);
void reference_evaluate(const evaluate_call& call, const executor& where);
void fused_on_threads(const fused_call& call, const executor& where, fused_codes codes,
                      kernel_scope scope);
void reference_fused(const fused_call& call, const executor& where);
void reference_quantize(const quantize_call& call, const executor& where);
void reference_dequantize(const dequantize_call& call, const executor& where);
/// The numbers of the tensor of a dequantization; ones for a rule with one level.
numerics::tensor_level tensor_level_of(const dequantize_call& call);
/// Writes the dequantization scale of a tile, if it is wanted: the view has data.
void store_tile_scale(const matrix_view& v, std::int64_t row, std::int64_t col,
                      std::uint32_t dequantization_scale);
/// The value of an element as binary32 bits. Not for fp64.
std::uint32_t binary32_of(const const_matrix_view& v, std::int64_t row, std::int64_t col);
void reference_matmul(const matmul_call& call, const executor& where);
/// Functions of rows by a kernel; several threads call it at once. Every thread gets rows of at
/// least `min_elements` elements, because fewer cost more than a thread saves.
void rows_on_threads(const row_call& call, const executor& where, row_kernel kernel,
                     std::int64_t min_elements, kernel_scope scope);
void reference_row(const row_task& task);
void reference_row_functions(const row_call& call, const executor& where);
const sum_kernels& reference_sums();
/// Attention by kernels; several threads call them at once. Heads that the kernels do not compute are
/// computed by the reference kernels.
void attention_on_threads(const attention_call& call, const executor& where,
                          const attention_kernels& kernels, kernel_scope scope);
void reference_attention(const attention_call& call, const executor& where);
/// Reductions of every host backend.
void host_reduce(const reduction_call& call, const executor& where);
/// Hashes of every host backend.
void host_hash(const hash_call& call, const executor& where);
/// Codebooks and int8 rows of every host backend.
void host_quantize_blocks(const quantize_blocks_call& call, const executor& where);
void host_dequantize_blocks(const dequantize_blocks_call& call, const executor& where);
void host_quantize_int8(const const_matrix_view& in, codebook_steps steps,
                        std::span<std::int8_t> codes, std::span<float> absmax,
                        const executor& where);
void host_dequantize_int8(std::span<const std::int8_t> codes, std::span<const float> absmax,
                          const matrix_view& out, const executor& where);
extern const list_kernels reference_list_kernels;
const update_kernels& reference_update_kernels();

/// The tensor_core sum of one element of D, as binary32 bits.
std::uint32_t reference_tensor_core_sum(const matmul_call& call, std::int64_t row,
                                        std::int64_t col);

}  // namespace samebits::backends
