// The kernels of launch_list_tiles(), and the choice of the cast and tile shape for one input format.
// Each block looks up its tensor, then does what a block of a matrix does.
#pragma once

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/quantize/tiles/block/block_quantize.cuh"
#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"
#include "backends/cuda/quantize/tiles/row_quantize.cuh"

namespace samebits::cuda {
namespace list_tiles {

/// Quantizes one block tile of the block's tensor.
template <format_id From, format_id To, class Cast, shape Shape>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    list_blocks_kernel(const __grid_constant__ list_launch list) {
#if __CUDA_ARCH__ >= 890
  if (list.skip != nullptr && *list.skip != 0) return;
  __shared__ task_memory task;
  __shared__ block_memory<Shape> memory;
  const list_task& mine = task.fetch(list);
  const tile_task& t = mine.block_tiles;
  const unsigned block = blockIdx.x - mine.first_block;
  const tile_scale* const known =
      list.scales == nullptr ? nullptr : &list.scales[list.tensor_of_block[blockIdx.x]];
  if (t.aligned && !t.by_definition) {
    quantize_block<From, To, Cast, Shape, access::vectors, task_in::shared_memory>(t, block, memory,
                                                                                   known);
  } else {
    quantize_defined_block<From, To, Shape>(t, block, memory, known);
  }
#endif
}

/// Quantizes the block's rows of its tensor.
template <format_id From, format_id To, class Cast>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    list_rows_kernel(const __grid_constant__ list_launch list) {
#if __CUDA_ARCH__ >= 890
  if (list.skip != nullptr && *list.skip != 0) return;
  __shared__ task_memory task;
  __shared__ row_memory memory;
  const list_task& mine = task.fetch(list);
  quantize_rows<From, To, Cast>(mine.block_tiles, blockIdx.x - mine.first_block, memory);
#endif
}

template <format_id From, format_id To, class Cast>
void launch_cast(const list_launch& list, cudaStream_t stream) {
  if (list.kernel == list_kernel::rows) {
    launch_kernel("cuda-native: quantize a list", list_rows_kernel<From, To, Cast>, list.blocks,
                  block_threads, 0, stream, list);
    return;
  }
  const std::size_t shared = list.transposed ? sizeof(transposed_codes) : 0;
  visit_shape(list.tile_rows, list.tile_cols, [&]<shape Shape>() {
    launch_kernel("cuda-native: quantize a list", list_blocks_kernel<From, To, Cast, Shape>,
                  list.blocks, block_threads, shared, stream, list);
  });
}

template <format_id From, format_id To>
void launch(const list_launch& list, cudaStream_t stream) {
  if (list.divided) return launch_cast<From, To, quotient_cast<To>>(list, stream);
  launch_cast<From, To, finite_product_cast<To>>(list, stream);
}

}  // namespace list_tiles

template <format_id From>
void launch_list_tiles_from(const list_launch& list, cudaStream_t stream) {
  if (list.to == format_id::e4m3) return list_tiles::launch<From, format_id::e4m3>(list, stream);
  list_tiles::launch<From, format_id::e5m2>(list, stream);
}

}  // namespace samebits::cuda
