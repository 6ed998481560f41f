// Quantization on the SIMD backends: kernels compute the calls they support on several threads, the
// reference backend all others. Compiled without instruction set flags.
#include "backends/dispatch/quantize.hpp"

#include <algorithm>
#include <mutex>

#include "backends/reference/reference.hpp"
#include "backends/simd/lanes/control_register.hpp"
#include "backends/simd/simd.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::backends {
namespace {

bool has_contiguous_rows(const const_matrix_view& v) { return v.col_stride == 1 || v.cols <= 1; }

/// Whether the kernels support a call.
bool is_dense(const quantize_call& call) {
  const quantize_outputs& o = call.outputs;
  return call.scale_format == format_id::fp32 && call.inverse_scales.data == nullptr &&
         o.codes.data != nullptr && o.codes_transposed.data == nullptr && o.statistics == nullptr &&
         has_contiguous_rows(call.in) && has_contiguous_rows(o.codes);
}

void store_scale(const matrix_view& v, std::uint32_t scale) {
  if (v.data != nullptr) __builtin_memcpy(v.data, &scale, sizeof scale);
}

/// Quantizes a matrix with one scale, split among threads.
void quantize_whole(const quantize_kernel& kernel, const quantize_call& call, int threads) {
  const std::int64_t elements = call.in.rows * call.in.cols;
  std::mutex combining;
  numerics::tile_amax amax = numerics::no_amax;
  for_each_part(elements, threads, [&](element_range range) {
    const numerics::tile_amax part = kernel.amax(call, range);
    const std::scoped_lock lock(combining);
    amax = numerics::combined(amax, part);
  });
  const numerics::tile_scale scale = numerics::scale_of(spec_of(call.to), call.scale, amax);
  store_scale(call.outputs.scales, scale.dequantization_scale);
  store_scale(call.outputs.scales_transposed, scale.dequantization_scale);
  for_each_part(elements, threads, [&](element_range range) {
    const ieee_control_register ieee;
    kernel.cast(call, scale, range);
  });
}

template <const quantize_kernel& Kernel>
void quantize_or_reference(const quantize_call& call, const executor& where) {
  if (!is_dense(call)) return reference_quantize(call, where);
  if (call.skip_if_nonzero != nullptr && *call.skip_if_nonzero != 0) return;
  const tile_grid& g = call.grid;
  const std::int64_t tiles = g.rows * g.cols;
  if (tiles == 0) return;
  if (tiles == 1) return quantize_whole(Kernel, call, where.threads);
  const std::int64_t tile = std::min(g.tile_rows * g.tile_cols, elements_worth_a_thread);
  for_each_part(
      tiles, where.threads,
      [&](element_range range) {
        const ieee_control_register ieee;
        Kernel.tiles(call, range);
      },
      elements_worth_a_thread / tile);
}

}  // namespace

void avx2_quantize(const quantize_call& call, const executor& where) {
  quantize_or_reference<avx2_quantize_kernel>(call, where);
}
void avx512_quantize(const quantize_call& call, const executor& where) {
  quantize_or_reference<avx512_quantize_kernel>(call, where);
}

}  // namespace samebits::backends
