// Launch of the kernel that quantizes with statistics in one pass.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

/// Nearest even, by a product, saturating or bounded; tiles 1 x 16 to 1 x 256 and 16 x 16 to
/// 128 x 128; aligned rows whose columns are a multiple of a block's. Block b writes its counts to
/// parts.counts[b]. The sums of row r's elements in block column c go to
/// parts.nodes[r * t.col_blocks + c].
void launch_statistics_tiles(const patch_task& t, format_id from, format_id to,
                             const statistics_parts& parts, cudaStream_t stream);

}  // namespace samebits::cuda
