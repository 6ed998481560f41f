// Loads the launch parameters of a block's tensor, in a kernel over a list.
#pragma once

#include "backends/cuda/quantize/tiles/list/list_tiles.cuh"

namespace samebits::cuda {

/// Launch parameters of one tensor in shared memory. They take the place of constant kernel
/// parameters.
struct task_memory {
  static constexpr unsigned words = sizeof(list_task) / sizeof(uint4);
  uint4 word[words];

  /// Copies and returns the launch parameters of the block's tensor. All threads of the block must
  /// call.
  __device__ __forceinline__ const list_task& fetch(const list_launch& list) {
    const list_task& mine = list.tasks[list.tensor_of_block[blockIdx.x]];
    for (unsigned i = threadIdx.x; i < words; i += block_threads) {
      word[i] = reinterpret_cast<const uint4*>(&mine)[i];
    }
    __syncthreads();
    return *reinterpret_cast<const list_task*>(word);
  }
};

}  // namespace samebits::cuda
