// Quantization of a list of tensors in one launch: its tables, and which kernel takes it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <span>
#include <vector>

#include "backends/cuda/quantize/tiles/patch.cuh"
#include "backends/dispatch/quantize.hpp"

namespace samebits::cuda {

/// A tensor of a list as a block reads it: in words of 16 bytes.
struct alignas(16) list_task {
  patch_task patches;
  std::uint32_t first_block;  ///< blocks of all tensors before
};

/// blocks: every tensor has tiles that block_tiles.cu takes; rows: every one has a scale per row;
/// tensors: every one has one scale, found by a pass before; none: the general kernels.
enum class list_kernel : std::uint8_t { none, blocks, rows, tensors };

/// The tables of a list on the host: of its tensors that have elements.
struct list_tables {
  std::vector<list_task> tasks;
  std::vector<std::uint32_t> tensor_of_block;
  bool divided = false;     ///< scale_math::div
  bool transposed = false;  ///< whether any tensor wants transposed codes
  bool given = true;        ///< whether all scales are given
};

list_kernel list_kernel_of(std::span<const backends::quantize_call> calls);
/// For blocks and rows. Throws invalid_argument for a list of 2^31 blocks.
list_tables list_tables_of(std::span<const backends::quantize_call> calls, list_kernel kernel);

/// A launch; pointers are to device memory.
struct list_launch {
  list_kernel kernel = list_kernel::none;
  const list_task* tasks = nullptr;
  const std::uint32_t* tensor_of_block = nullptr;
  std::uint32_t blocks = 0;
  int tile_rows = 0, tile_cols = 0;  ///< log2, of list_kernel::blocks
  bool divided = false, transposed = false, given = false;
  format_id from = format_id::bf16, to = format_id::e4m3;
  const std::uint32_t* skip = nullptr;
  const tile_scale* scales = nullptr;  ///< of list_kernel::tensors, by position
};
/// The amaxes of list_kernel::tensors by position, which start as nothing_counted.
void launch_list_amaxes(const list_launch& list, tile_amax* amaxes, cudaStream_t stream);
void launch_list_tiles(const list_launch& list, cudaStream_t stream);

}  // namespace samebits::cuda
