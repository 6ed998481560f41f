// How a block of a kernel over a list finds its tensor.
#pragma once

#include "backends/cuda/quantize/tiles/list_tiles.cuh"

namespace samebits::cuda {

/// A task in shared memory, where it takes the place of a kernel's constant parameters.
struct task_memory {
  static constexpr unsigned words = sizeof(list_task) / sizeof(uint4);
  uint4 word[words];

  /// That of the block; all threads come here.
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
