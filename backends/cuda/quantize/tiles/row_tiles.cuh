// Launches of the kernels whose tiles are whole rows.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

/// Blocks of a launch. t.lanes is log2 of the threads that share a row: 2 to 8, the least whose
/// strips hold the row where any do.
std::uint64_t row_block_count(const patch_task& t);

void launch_row_tiles(const patch_task& t, format_id from, format_id to, cudaStream_t stream);

}  // namespace samebits::cuda
