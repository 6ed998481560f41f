// The kernels of list_tiles.cu for bf16 inputs.
#include "backends/cuda/quantize/tiles/list/list_tiles_kernel.cuh"

namespace samebits::cuda {

template void launch_list_tiles_from<format_id::bf16>(const list_launch&, cudaStream_t);

}  // namespace samebits::cuda
