// Device functions of the general quantization kernels: for one tile, one span of a large tile and
// one element.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/general/quantize_task.cuh"
#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tuning.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::cuda {

/// Elements of a chunk: consecutive elements of the matrix that one block rounds. A chunk's partial
/// sum is one subtree of the sums of contract §6.
using numerics::chunk_elements;

/// Scales, rounds and stores one element. In place of the dequantized value: the code.
template <class Arithmetic>
__device__ quantized_element quantized(const quantize_task& t, const numerics::tile_scale& scale,
                                       std::uint64_t row, std::uint64_t col) {
  const std::uint32_t x = t.element(row, col);
  const std::uint32_t y = numerics::scaled<Arithmetic>(t.scale.rule, scale, x);
  const auto cast = numerics::encode<std::uint32_t>(t.target, t.cast, y, t.dither(row, col));
  t.store_element(row, col, cast.code);
  const auto magnitude = static_cast<std::uint32_t>(numerics::magnitude_mask(t.target));
  return {x, y, cast.code & magnitude, cast.code, cast.overflow};
}

/// The amax of elements [begin, end) of a tile, computed by one warp, whose lanes all call, or by
/// one thread.
template <int Lanes = 32>
__device__ inline tile_amax amax_of_span(const quantize_task& t, std::uint64_t tile,
                                         std::uint64_t begin, std::uint64_t end, unsigned lane) {
  tile_amax amax = numerics::no_amax;
  for_each_of_tile<Lanes>(t, tile, begin, end, lane, [&](std::uint64_t row, std::uint64_t col) {
    amax = numerics::combined(amax,
                              numerics::amax_contribution(t.scale.nonfinite, t.element(row, col)));
  });
  return Lanes == 1 ? amax : __reduce_max_sync(all_lanes, amax);
}

/// One warp quantizes one tile: all lanes must call. Or one thread, for tiles of at most 32
/// elements. The elements are read again for rounding, then from the caches.
template <class Arithmetic, int Lanes = 32>
__device__ void quantize_tile(const quantize_task& t, std::uint64_t tile, unsigned lane) {
  const std::uint64_t all = t.tile_rows * t.tile_cols;
  const std::uint64_t tile_row = tile / t.grid_cols, tile_col = tile % t.grid_cols;
  const tile_amax amax =
      t.has_given_scales() ? numerics::no_amax : amax_of_span<Lanes>(t, tile, 0, all, lane);
  const auto scale = t.scale_of_tile<Arithmetic>(tile_row, tile_col, amax);
  if (lane == 0) t.store_scale(tile_row, tile_col, scale.dequantization_scale);
  for_each_of_tile<Lanes>(t, tile, 0, all, lane, [&](std::uint64_t row, std::uint64_t col) {
    quantized<Arithmetic>(t, scale, row, col);
  });
}

/// Whether a tile has more than span_elements elements, too many for one warp.
inline bool has_large_tiles(const backends::quantize_call& call) {
  return call.grid.tile_rows > static_cast<std::int64_t>(span_elements) / call.grid.tile_cols;
}

}  // namespace samebits::cuda
