// Computes the amax of a whole matrix, or of each matrix of a list in one launch.
//
// One block per 128 x 128 block tile (or as many elements in longer rows). Each thread reduces 8
// rows of 8 elements, then each warp, then the block, which adds its amax by one atomic maximum.
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/block/block_tile.cuh"
#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"
#include "backends/cuda/quantize/tiles/tile_launches.cuh"
#include "backends/dispatch/visit.hpp"

namespace samebits::cuda {
namespace {

/// Updates *amax with the amax of block tile `block`. All threads of the block must call.
template <format_id From>
__device__ __forceinline__ void combine_block(const tile_task& t, unsigned block, tile_amax* amax) {
  constexpr unsigned warps = block_threads / 32;
  __shared__ tile_amax of_warp[warps];
  const block_coordinates at = block_coordinates_of(t, block);
  const auto combine = [&]<access Access>() {
    vector8<From> x[rows_a_thread];
    load_vectors<From, Access>(t, at.row, at.col, at.count, x);
    using maxima = row_maxima<From, rows_a_thread>;
    std::uint32_t maximum = maxima(x).of_all();
    const bool finite = maximum < inf_magnitude<From>;
    if (!finite) maximum = maxima(x, t, at.row, at.col).of_all();
    tile_amax mine = numerics::no_amax;
    if (at.count > 0) mine = tile_maximum{maximum, !finite, finite}.template amax<From>();
    mine = __reduce_max_sync(all_lanes, mine);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    mine = __reduce_max_sync(all_lanes, of_warp[threadIdx.x % warps]);
    if (threadIdx.x == 0) atomicMax(amax, mine);
  };
  if (t.aligned) return combine.template operator()<access::vectors>();
  combine.template operator()<access::elements>();
}

/// The amax of one matrix. One block per block tile.
template <format_id From>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    tensor_amax_kernel(const __grid_constant__ tile_task t, tile_amax* const amax) {
#if __CUDA_ARCH__ >= 890
  if (t.skip != nullptr && *t.skip != 0) return;
  combine_block<From>(t, blockIdx.x, amax);
#endif
}

/// The amax of each matrix of a list whose scale is not given. One block per block tile.
template <format_id From>
__global__ void __launch_bounds__(block_threads, resident_blocks<From>)
    list_amaxes_kernel(const __grid_constant__ list_launch list, tile_amax* const amaxes) {
#if __CUDA_ARCH__ >= 890
  if (list.skip != nullptr && *list.skip != 0) return;
  __shared__ task_memory task;
  const list_task& mine = task.fetch(list);
  if (mine.block_tiles.inverse_scales.data != nullptr) return;
  combine_block<From>(mine.block_tiles, blockIdx.x - mine.first_block,
                      &amaxes[list.tensor_of_block[blockIdx.x]]);
#endif
}

}  // namespace

void launch_tensor_amax(const tile_task& t, format_id from, tile_amax* amax, cudaStream_t stream) {
  backends::visit_quantized(from, [&]<format_id From>() {
    launch_kernel("cuda-native: quantize", tensor_amax_kernel<From>,
                  static_cast<unsigned>(block_count(t)), block_threads, 0, stream, t, amax);
  });
}

void launch_list_amaxes(const list_launch& list, tile_amax* amaxes, cudaStream_t stream) {
  backends::visit_quantized(list.from, [&]<format_id From>() {
    launch_kernel("cuda-native: quantize", list_amaxes_kernel<From>, list.blocks, block_threads, 0,
                  stream, list, amaxes);
  });
}

}  // namespace samebits::cuda
