// Quantization of a list of tensors in one launch: the kernel's tables, and the choice of the
// kernel.
//
// tensor_of_block[blockIdx.x]  ->  tasks[tensor]  ->  block tile blockIdx.x - first_block
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/quantize/tiles/tile_codes.cuh"
#include "backends/dispatch/calls/quantize.hpp"

namespace samebits::cuda {

/// The launch parameters of one tensor of a list. Blocks copy the structure in words of 16 bytes.
struct alignas(16) list_task {
  tile_task block_tiles;
  std::uint32_t first_block;  ///< number of the tensor's first block in the launch
};

/// The kernel that quantizes every tensor of a list:
///
/// - none: the general kernels
/// - blocks: launch_block_tiles(), for tiles of up to 128 x 128 elements
/// - rows: row_tiles.cu, for one scale per row
/// - tensors: one scale per tensor, found by a kernel before
enum class list_kernel : std::uint8_t { none, blocks, rows, tensors };

/// Parameters of one launch over a list; pointers are to device memory.
struct list_launch {
  list_kernel kernel = list_kernel::none;
  const list_task* tasks = nullptr;
  const std::uint32_t* tensor_of_block = nullptr;
  std::uint32_t blocks = 0;
  int tile_rows = 0, tile_cols = 0;  ///< log2 of the tile size, for list_kernel::blocks
  bool divided = false;              ///< scale_rule::div
  bool transposed = false;           ///< whether any tensor wants transposed codes
  bool given = true;                 ///< whether the caller gives all scales
  format_id from = format_id::bf16, to = format_id::e4m3;
  const std::uint32_t* skip = nullptr;
  const tile_scale* scales = nullptr;  ///< one per tensor, for list_kernel::tensors
};

/// The tables of a list on the host, and the parameters of its launch. Tensors without elements are
/// left out.
struct list_tables {
  std::vector<list_task> tasks;
  std::vector<std::uint32_t> tensor_of_block;
  list_launch launch;  ///< without the tables' addresses
};

/// The kernel for a list; list_kernel::none if no cuda-native kernel supports every tensor.
list_kernel list_kernel_of(std::span<const backends::quantize_call> calls);
/// The tables for any kernel but list_kernel::none.
///
/// @throws invalid_argument if the launch would have 2^31 blocks or more
list_tables list_tables_of(std::span<const backends::quantize_call> calls, list_kernel kernel);

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

/// Enqueues the amax of every tensor whose scale is not given, for list_kernel::tensors. amaxes[]
/// has one entry per tensor and must start as no_amax.
void launch_list_amaxes(const list_launch& list, tile_amax* amaxes, cudaStream_t stream);
/// launch_list_tiles() for one input format; each is a translation unit (list_tiles_format.cu.in).
/// There must be at least one block.
template <format_id From>
void launch_list_tiles_from(const list_launch& list, cudaStream_t stream);
/// Enqueues the quantization of the list.
void launch_list_tiles(const list_launch& list, cudaStream_t stream);

}  // namespace samebits::cuda
