// The SIMD backends: AVX2 and AVX-512, chosen at run time.
#pragma once

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "backends/dispatch/calls/attention.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/calls/matmul.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "backends/reference/quantize_statistics.hpp"
#include "backends/self_test/probe_report.hpp"

namespace samebits::backends {

extern const backend avx2;
extern const backend avx512;

// Each function is compiled in its own translation unit with the flags of its instruction set.
// Neither format may be fp64.
void avx2_convert(const convert_call& call, element_range range);
void avx512_convert(const convert_call& call, element_range range);

/// What quantize_kernel::chunks needs beside the call.
struct chunk_task {
  const numerics::tile_scale* scales;  ///< of all tiles, in row-major order
  /// Elements count as saturated if they are finite and their scaled magnitude, as binary32 bits, is
  /// between this number and Inf.
  std::uint32_t overflow_start;
  quantize_chunk_statistics* statistics;  ///< of all chunks; null if not wanted
};

/// Quantization of matrices with contiguous rows of elements. Several threads call these functions
/// at once. The control register must have its IEEE 754 state.
struct quantize_kernel {
  /// For calls that `is_dense` accepts: contiguous rows of codes, no transposed codes, no
  /// statistics. Quantizes a range of complete tiles, numbered in row-major order.
  void (*tiles)(const quantize_call& call, element_range tiles);
  /// For a tile that is split among threads: the amax of a range of elements in row-major order
  /// (amax), and their codes (cast, for calls that `is_dense` accepts).
  numerics::tile_amax (*amax)(const quantize_call& call, element_range elements);
  void (*cast)(const quantize_call& call, const numerics::tile_scale& scale,
               element_range elements);
  /// Writes the scales of a range of tiles to a table of all tiles. Numbers tiles in row-major
  /// order.
  void (*scales)(const quantize_call& call, element_range tiles, numerics::tile_scale* table);
  /// Writes all codes of a range of chunks and their statistics. A chunk is a number of consecutive
  /// elements in row-major order (numerics::chunk_elements). Does not write scales.
  void (*chunks)(const quantize_call& call, const chunk_task& task, element_range chunks);
};
extern const quantize_kernel avx2_quantize_kernel;
extern const quantize_kernel avx512_quantize_kernel;

/// Tensor list operations on contiguous elements of any alignment, at most one chunk
/// (numerics/sums/sum_tree.hpp). Several threads call these functions at once. The control register
/// must have its IEEE 754 state.
struct list_lanes_kernel {
  /// The statistics of fp32, fp16 or bf16 elements: the largest magnitude code, the numbers of NaN
  /// and Inf elements, and the sum of squares as binary64 bits. Any NaN sum means the canonical
  /// NaN.
  struct sums {
    std::uint32_t maximum;
    std::uint32_t nan;
    std::uint32_t inf;
    std::uint64_t squares;
  };
  sums (*inspect)(format_id format, const std::byte* codes, std::int64_t count);
  /// The statistics of binary32 elements that are scaled in place: the largest magnitudes before
  /// and after scaling, and the number of elements that were non-finite before.
  struct scaled {
    std::uint32_t before;
    std::uint32_t after;
    std::uint32_t nonfinite;
  };
  scaled (*scale)(std::byte* x, std::int64_t count, std::uint32_t factor);
  /// acc = RN(acc + RN(x * scale)) on binary32 elements.
  void (*accumulate)(std::byte* acc, const std::byte* x, std::int64_t count, std::uint32_t scale);
  /// x = RN(RN(a * x) + RN(b * y)) on binary32 elements.
  void (*combine)(std::uint32_t a, std::byte* x, std::uint32_t b, const std::byte* y,
                  std::int64_t count);
};
extern const list_lanes_kernel avx2_list_lanes;
extern const list_lanes_kernel avx512_list_lanes;

/// The sum of the squares of at most one chunk of binary32 elements, as binary64 bits.
std::uint64_t avx2_squares(const std::uint32_t* words, std::int64_t count);
std::uint64_t avx512_squares(const std::uint32_t* words, std::int64_t count);

/// The kernel_scope of kernels that need the IEEE 754 state of the control register.
void in_ieee_state(const std::function<void()>& work);

extern const list_kernels avx2_list_kernels;
extern const list_kernels avx512_list_kernels;
// Compute calls that supports() of backends/simd/arithmetic/arithmetic_rule.hpp accepts; the first
// also those that supports_flags() accepts, and leaves the flags in the control register. The control
// register must have its IEEE 754 state.
void avx2_compute(const compute_call& call, element_range range);
void avx512_compute(const compute_call& call, element_range range);

// Functions of operation entries. The reference backend computes the calls that the kernels do not
// support.
flags avx2_compute_or_reference(const compute_call& call, element_range range);
flags avx512_compute_or_reference(const compute_call& call, element_range range);
void avx2_evaluate(const evaluate_call& call, const executor& where);
void avx2_fused(const fused_call& call, const executor& where);
void avx512_evaluate(const evaluate_call& call, const executor& where);
void avx512_fused(const fused_call& call, const executor& where);
void avx2_row_functions(const row_call& call, const executor& where);
void avx512_row_functions(const row_call& call, const executor& where);
const sum_kernels& avx2_sums();
const sum_kernels& avx512_sums();
void avx2_attention(const attention_call& call, const executor& where);
void avx512_attention(const attention_call& call, const executor& where);
void avx2_quantize(const quantize_call& call, const executor& where);
void avx512_quantize(const quantize_call& call, const executor& where);
void avx2_dequantize(const dequantize_call& call, const executor& where);
void avx512_dequantize(const dequantize_call& call, const executor& where);
void avx2_matmul(const matmul_call& call, const executor& where);
void avx512_matmul(const matmul_call& call, const executor& where);

void avx2_probes(probe_report& report);
void avx512_probes(probe_report& report);
/// Requires a processor with fused multiply-adds.
void fma_probes(probe_report& report);

}  // namespace samebits::backends
