// Launch of the kernel that quantizes matrices with one scale per row.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

/// Blocks of a launch. t.log2_lanes, from 2 to 8, is log2 of the threads that share a row: the
/// smallest number whose registers hold the row, or 8 for longer rows.
std::uint64_t row_block_count(const tile_task& t);

/// Enqueues the quantization of a matrix with one scale per row.
void launch_row_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream);

}  // namespace samebits::cuda
