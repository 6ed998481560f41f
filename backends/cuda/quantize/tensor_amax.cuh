// The amax of a whole matrix.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

/// Of a task of blocks of 128 x 128; joined to *amax.
void launch_tensor_amax(const patch_task& t, format_id from, tile_amax* amax, cudaStream_t stream);

}  // namespace samebits::cuda
