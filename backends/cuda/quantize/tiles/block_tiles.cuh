// Launches of the kernels that hold a patch of a matrix in registers.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/statistics.cuh"
#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

/// Blocks of a launch; t.lanes and t.col_blocks are set.
std::uint64_t block_count(const patch_task& t);

/// Tiles 1 x 16 to 1 x 256, 16 x 16 to 128 x 128 and 16 x 1 to 128 x 1; t.lanes is 4 for what is
/// transposed and for tiles of several rows, else 4 to 8. `known`, in device memory or null: the
/// scale of all tiles.
void launch_block_tiles(const patch_task& t, format_id from, format_id to, cudaStream_t stream,
                        const tile_scale* known = nullptr);

/// log2 of the patches side by side whose rows have nodes in common, in a launch with statistics.
int counted_group(const patch_task& t);
/// Blocks of such a launch on the current device, and on any.
std::uint64_t counted_blocks(const patch_task& t);
std::uint64_t most_counted_blocks(const patch_task& t);

/// Nearest even, saturating, not divided, with statistics: tiles 1 x 16 to 1 x 256 and 16 x 16 to
/// 128 x 128. The patches' width divides the matrix's: a node for each row of each group of
/// patches, row after row, and counts for each of parts.count_count blocks.
void launch_counted_tiles(const patch_task& t, format_id from, format_id to,
                          const statistics_parts& parts, cudaStream_t stream);

}  // namespace samebits::cuda
