// The SIMD backends: AVX2 and AVX-512, chosen at run time. backend_isa.cpp.in makes each from the kernels of
// its instruction set.
#pragma once

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/array_arithmetic.hpp"
#include "backends/dispatch/calls/attention.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/calls/fused.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/calls/matmul.hpp"
#include "backends/dispatch/calls/optimizer.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "backends/reference/quantize_statistics.hpp"
#include "backends/self_test/probe_report.hpp"
#include "backends/simd/arithmetic/arithmetic_rule.hpp"
#include "backends/simd/functions/functions.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"

namespace samebits::backends {

extern const backend avx2;
extern const backend avx512;
inline constexpr std::string_view avx2_description = "x86-64 with AVX2, 8 lanes";
inline constexpr std::string_view avx512_description = "x86-64 with AVX-512, 16 lanes";

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

/// The kernels of one instruction set, compiled in translation units with its flags. Several threads
/// call them at once. The control register must have its IEEE 754 state.
struct lane_kernels {
  const backend& self;
  simd::fused_steps steps;
  void (*convert)(const convert_call& call, element_range range);  ///< neither format may be fp64
  /// Calls that supports() of backends/simd/arithmetic/arithmetic_rule.hpp accepts.
  void (*compute)(const compute_call& call, element_range range);
  const quantize_kernel& quantize;
  const list_lanes_kernel& lists;
  const matmul_kernel& products;
  // On processors with fused multiply-adds:
  function_codes functions;  ///< of all rules but `exact`
  function_codes exact;
  fused_codes fused;
  const row_kernels& rows;
};
inline constexpr simd::fused_steps avx2_steps = simd::fused_steps::none;
inline constexpr simd::fused_steps avx512_steps = simd::fused_steps::directed;
extern const lane_kernels avx2_kernels;
extern const lane_kernels avx512_kernels;

/// The chunks of lists, by lane_kernels::lists.
extern const list_kernels avx2_list_kernels;
extern const list_kernels avx512_list_kernels;

/// backend::why_unsupported
std::string why_not_avx2();
std::string why_not_avx512();
/// Whether the processor has fused multiply-adds, which AVX2 does not include.
bool has_fused_multiply_adds();
/// The kernel_scope of kernels that need the IEEE 754 state of the control register.
void in_ieee_state(const std::function<void()>& work);
/// Runs the probes of a backend's own files, then those of the files that are compiled with fused
/// multiply-adds.
void run_all_probes(void (*own)(probe_report&), probe_report& report);

// Functions of operation entries. The reference backend computes the calls that the kernels do not
// support.
void convert_by_lanes(const lane_kernels& by, const convert_call& call, element_range range);
flags compute_by_lanes(const lane_kernels& by, const compute_call& call, element_range range);
void evaluate_by_lanes(const lane_kernels& by, const evaluate_call& call, const executor& where);
void fused_by_lanes(const lane_kernels& by, const fused_call& call, const executor& where);
void rows_by_lanes(const lane_kernels& by, const row_call& call, const executor& where);
void attention_by_lanes(const lane_kernels& by, const attention_call& call, const executor& where);
void quantize_by_lanes(const lane_kernels& by, const quantize_call& call, const executor& where);
void dequantize_by_lanes(const lane_kernels& by, const dequantize_call& call,
                         const executor& where);
void multiply_by_lanes(const lane_kernels& by, const matmul_call& call, const executor& where);
/// update_kernels::unscaled_codes by a conversion of arrays.
void convert_words(void (*convert)(const convert_call&, element_range), const stored_part& part,
                   const std::uint32_t* words);

}  // namespace samebits::backends
