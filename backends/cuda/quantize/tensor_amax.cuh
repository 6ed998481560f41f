// Launch of the kernel that finds the amax of a whole matrix.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

/// Enqueues *amax = max(*amax, amax of the matrix). The launch parameters `t` describe 128 x 128
/// block tiles.
void launch_tensor_amax(const tile_task& t, format_id from, tile_amax* amax, cudaStream_t stream);

}  // namespace samebits::cuda
