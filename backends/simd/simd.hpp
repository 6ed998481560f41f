// The SIMD backends: AVX2 and AVX-512, chosen at run time.
#pragma once

#include "backends/backend.hpp"
#include "backends/probe_report.hpp"
#include "backends/quantize.hpp"

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

void avx2_probes(probe_report& report);
void avx512_probes(probe_report& report);

}  // namespace samebits::backends
