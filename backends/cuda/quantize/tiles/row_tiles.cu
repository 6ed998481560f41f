// Quantizes a matrix with one scale per row. 4 to 256 threads per row; see row_quantize.cuh.
//
// Cost: rows of up to 16384 elements are read once; bf16 to e4m3 takes 101 to 103 % of the bandwidth
// of a device-to-device copy of the same bytes on an H200 (docs/benchmarks.md). Longer rows are read
// twice, except for their last span.
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/quantize/tiles/row_quantize.cuh"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {
namespace {

/// Quantizes the rows of block blockIdx.x.
template <format_id From, format_id To, class Cast>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    row_tiles_kernel(const __grid_constant__ tile_task t) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  __shared__ row_memory memory;
  quantize_rows<From, To, Cast>(t, blockIdx.x, memory);
#endif
}

}  // namespace

void launch_row_tiles(const tile_task& t, format_id from, format_id to, cudaStream_t stream) {
  backends::visit_quantization<false>(from, to, [&]<format_id From, format_id To>() {
    const auto kernel = t.scale.rule == scale_rule::div
                            ? row_tiles_kernel<From, To, quotient_cast<To>>
                            : row_tiles_kernel<From, To, finite_product_cast<To>>;
    launch_kernel("cuda-native: quantize", kernel, static_cast<unsigned>(row_block_count(t)),
                  block_threads, 0, stream, t);
  });
}

}  // namespace samebits::cuda
