// The SIMD backends: AVX2 and AVX-512, chosen at run time.
#pragma once

#include "backends/dispatch/array_arithmetic.hpp"
#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/matmul.hpp"
#include "backends/dispatch/plan.hpp"
#include "backends/dispatch/quantize.hpp"
#include "backends/self_test/probe_report.hpp"

namespace samebits::backends {

extern const backend avx2;
extern const backend avx512;

// Each compiled in a translation unit of its own, with its instruction set's flags; neither format
// may be fp64.
void avx2_convert(const convert_call& call, element_range range);
void avx512_convert(const convert_call& call, element_range range);

/// Quantization of what `is_dense` takes: rows of elements and of codes next to each other, no
/// transposed codes, no statistics. Called from several threads at once, with the control register
/// as IEEE 754 has it.
struct quantize_kernel {
  /// All of some tiles, numbered in row-major order.
  void (*tiles)(const quantize_call& call, element_range tiles);
  /// For a tile that is shared among threads: the amax of elements in row-major order, and their
  /// codes.
  numerics::tile_amax (*amax)(const quantize_call& call, element_range elements);
  void (*cast)(const quantize_call& call, const numerics::tile_scale& scale,
               element_range elements);
};
extern const quantize_kernel avx2_quantize_kernel;
extern const quantize_kernel avx512_quantize_kernel;

extern const quantizer avx2_quantizer;
extern const quantizer avx512_quantizer;

/// Plan operations on elements that lie next to each other, at any alignment; up to a chunk of them
/// (numerics/sums/sum_tree.hpp). Called from several threads at once, with the control register as
/// IEEE 754 has it.
struct plan_lanes_kernel {
  /// What a pass over elements of fp32, fp16 or bf16 finds: the largest magnitude code, elements
  /// that are NaN and Inf, and the sum of squares as binary64 bits, any NaN standing for the
  /// canonical one.
  struct sums {
    std::uint32_t most;
    std::uint32_t nan;
    std::uint32_t inf;
    std::uint64_t squares;
  };
  sums (*inspect)(format_id format, const std::byte* codes, std::int64_t count);
  /// Of binary32 elements scaled in place: the largest magnitudes before and after, and how many
  /// were not finite before.
  struct scaled {
    std::uint32_t before;
    std::uint32_t after;
    std::uint32_t nonfinite;
  };
  scaled (*scale)(std::byte* x, std::int64_t count, std::uint32_t factor);
  /// Binary32 elements; acc = RN(acc + RN(x * scale)).
  void (*accumulate)(std::byte* acc, const std::byte* x, std::int64_t count, std::uint32_t scale);
  /// Binary32 elements; x = RN(RN(a * x) + RN(b * y)).
  void (*combine)(std::uint32_t a, std::byte* x, std::uint32_t b, const std::byte* y,
                  std::int64_t count);
};
extern const plan_lanes_kernel avx2_plan_lanes;
extern const plan_lanes_kernel avx512_plan_lanes;

extern const plan_kernels avx2_plan_kernels;
extern const plan_kernels avx512_plan_kernels;
// What backends/simd/arithmetic/arithmetic_rule.hpp takes(), with the control register as IEEE 754
// has it.
void avx2_compute(const compute_call& call, element_range range);
void avx512_compute(const compute_call& call, element_range range);

extern const calculator avx2_calculator;
extern const calculator avx512_calculator;

/// Matrix products.
extern const matrix_multiplier avx2_multiplier;
extern const matrix_multiplier avx512_multiplier;

void avx2_probes(probe_report& report);
void avx512_probes(probe_report& report);

}  // namespace samebits::backends
