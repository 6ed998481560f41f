// Launches of the kernels that hold a patch of a matrix in registers.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

/// Blocks of a launch; t.lanes and t.col_blocks are set.
std::uint64_t block_count(const patch_task& t);

/// Tiles 1 x 16 to 1 x 256, 16 x 16 to 128 x 128 and 16 x 1 to 128 x 1; t.lanes is 4 for what is
/// transposed and for tiles of several rows, else 4 to 8. `known`, in device memory or null: the
/// scale of all tiles.
void launch_block_tiles(const patch_task& t, format_id from, format_id to, cudaStream_t stream,
                        const tile_scale* known = nullptr);

}  // namespace samebits::cuda
