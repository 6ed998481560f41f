// Quantizes a matrix in one pass. One block per block tile of 16384 elements, from 128 rows of 128
// elements to 8 rows of 2048 elements. The kernel (block_tiles_kernel.cuh) is compiled in one file
// per input format.
#include "backends/cuda/quantize/tiles/block/block_tiles.cuh"

#include <cstdint>

#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {

std::uint64_t block_count(const tile_task& t) {
  const auto rows = static_cast<std::uint64_t>(block_threads * rows_a_thread >> t.log2_lanes);
  return (t.rows + rows - 1) / rows * t.col_blocks;
}

void launch_block_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream,
                        const tile_scale* known) {
  backends::visit_quantized(
      from, [&]<format_id From>() { launch_block_tiles_from<From>(t, to, stream, known); });
}

}  // namespace samebits::cuda
