// Fused tiles: quantizes the results of fused elements in 1 x 128 tiles, which no memory holds.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/functions/fused/fused_kernel.cuh"
#include "backends/cuda/quantize/tiles/lane_tiles.cuh"

namespace samebits::cuda {

/// Computes codes and scales of a call. 16 threads a tile, 8 columns each; as fused_kernel, but the
/// threads of a warp stay together. Cost: one read of each operand, one write of the codes.
template <class Numbers, format_id From, class Of>
__global__ void __launch_bounds__(fused_threads)
    fused_tiles_kernel(const fused_launch d, const __grid_constant__ tile_task t,
                       const format_id to) {
  if constexpr (Numbers::compiled) {
    constexpr int E = vector_length;
    if (t.skip != nullptr && *t.skip != 0) return;
    const Numbers numbers(d.plan.f.format);
    const fused_plan plan = Of::plan_of(d.plan);
    const std::int64_t row_step = std::int64_t{gridDim.y} * blockDim.y;
    const std::int64_t block_cols = std::int64_t{blockDim.x} * E;
    for (std::int64_t first_row = std::int64_t{blockIdx.y} * blockDim.y; first_row < d.rows;
         first_row += row_step) {
      const std::int64_t row = first_row + threadIdx.y;
      for (std::int64_t first = blockIdx.x * block_cols; first < d.cols;
           first += gridDim.x * block_cols) {
        const fused_columns at = columns_of<E>(d, row, first + threadIdx.x * E);
        row_codes<Numbers::bytes, E> codes = {};
        if (at.count > 0) {
          typename Numbers::word y[backends::max_fused_results][E];
          evaluate_columns<Numbers, E>(d, plan, numbers, row, at, y);
          codes = numbers.codes(y[0]);
        }
        quantize_lanes<From>(t, to, codes, static_cast<std::uint64_t>(row),
                             static_cast<std::uint32_t>(at.col), at.count > 0);
      }
    }
  }
}

template <class Numbers, format_id From, class Of>
void launch_fused_tiles(const backends::fused_quantize_call& call, const tile_task& task,
                        cudaStream_t stream) {
  const fused_launch d = fused_launch_of(call.elements, vector_length * Numbers::bytes, false);
  const fused_grid grid(d, vector_length, lane_tile / vector_length);
  launch_kernel("fused operators: quantize", fused_tiles_kernel<Numbers, From, Of>, grid.blocks,
                grid.threads, 0, stream, d, task, call.tiles.to);
}

}  // namespace samebits::cuda
