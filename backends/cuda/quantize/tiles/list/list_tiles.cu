// Quantizes a list of tensors in one launch. The kernels (list_tiles_kernel.cuh) are compiled in
// one file per input format.
#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"

#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {

void launch_list_tiles(const list_launch& list, cudaStream_t stream) {
  if (list.blocks == 0) return;
  backends::visit_quantized(list.from,
                            [&]<format_id From>() { launch_list_tiles_from<From>(list, stream); });
}

}  // namespace samebits::cuda
