// Launch of the kernel that quantizes with statistics in one pass.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

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

}  // namespace samebits::cuda
