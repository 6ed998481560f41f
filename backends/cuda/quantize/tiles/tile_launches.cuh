// Launches of the kernels that quantize matrices with contiguous rows, and of the amax of a matrix.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

/// Block tiles of a matrix, which are the blocks of a launch. t.log2_lanes and t.col_blocks
/// must be set.
inline std::uint64_t block_count(const tile_task& t) {
  const auto rows = static_cast<std::uint64_t>(block_threads * rows_a_thread >> t.log2_lanes);
  return (t.rows + rows - 1) / rows * t.col_blocks;
}
/// Blocks of a launch of row tiles. t.log2_lanes, from 2 to 8, is log2 of the threads that share a row:
/// the smallest number whose registers hold the row, or 8 for longer rows.
inline std::uint64_t row_block_count(const tile_task& t) {
  const auto rows = static_cast<std::uint64_t>(block_threads >> t.log2_lanes);
  return (t.rows + rows - 1) / rows;
}

/// launch_block_tiles() for one input format; each is a translation unit (block_tiles_format.cu.in).
template <format_id From>
void launch_block_tiles_from(const tile_task& t, format_id to, cudaStream_t stream,
                             const tile_scale* known);

/// Enqueues the quantization of a matrix with tiles of 1 x 16 to 1 x 256, 16 x 16 to 128 x 128 or
/// 16 x 1 to 128 x 1. One block per block tile.
///
/// @param t launch parameters; t.log2_lanes is 4 to 8, and 4 if transposed codes are wanted or
///   tiles have several rows
/// @param known the scale that all tiles share, in device memory, or null
void launch_block_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream,
                        const tile_scale* known = nullptr);

/// Enqueues the quantization of a matrix with one scale per row.
void launch_row_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream);

/// Enqueues a quantization that also leaves partial statistics in `parts`.
///
/// Requires:
/// - rounding to nearest even, a scale rule that multiplies, and scales by which no finite element
///   exceeds the largest code
/// - tiles of 1 x 16 to 1 x 256 or 16 x 16 to 128 x 128
/// - contiguous rows, aligned as tile_task::aligned says
/// - a row length that is a multiple of the width of a block tile
/// - no transposed codes
///
/// Block b writes its counts to parts.counts[b]. The partial sum of row r in block column c goes to
/// parts.partial_sums[r * t.col_blocks + c].
void launch_statistics_tiles(const tile_task& t, format_id from, format_id to,
                             const statistics_parts& parts, cudaStream_t stream);

/// Enqueues *amax = max(*amax, amax of the matrix). The launch parameters `t` describe 128 x 128
/// block tiles.
void launch_tensor_amax(const tile_task& t, format_id from, tile_amax* amax, cudaStream_t stream);

}  // namespace samebits::cuda
