// Launch of the kernel that quantizes block tiles in registers (block_tiles.cu).
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

/// Block tiles of a matrix, which are the blocks of a launch. t.log2_lanes and t.col_blocks
/// must be set.
std::uint64_t block_count(const tile_task& t);

/// Enqueues the quantization of a matrix with tiles of 1 x 16 to 1 x 256, 16 x 16 to 128 x 128 or
/// 16 x 1 to 128 x 1.
///
/// @param t launch parameters; t.log2_lanes is 4 to 8, and 4 if transposed codes are wanted or
///   tiles have several rows
/// @param known the scale that all tiles share, in device memory, or null
void launch_block_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream,
                        const tile_scale* known = nullptr);

/// launch_block_tiles() for one input format; each is a translation unit (block_tiles_format.cu.in).
template <format_id From>
void launch_block_tiles_from(const tile_task& t, format_id to, cudaStream_t stream,
                             const tile_scale* known);

}  // namespace samebits::cuda
