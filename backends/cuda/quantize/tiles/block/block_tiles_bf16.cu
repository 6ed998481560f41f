// The kernel of block_tiles.cu for bf16 inputs.
#include "backends/cuda/quantize/tiles/block/block_tiles_kernel.cuh"

namespace samebits::cuda {

template void launch_block_tiles_from<format_id::bf16>(const tile_task&, format_id, cudaStream_t,
                                                       const tile_scale*);

}  // namespace samebits::cuda
