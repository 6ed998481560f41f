// The kernel that runs one tensor core instruction on tiles: mma.sync by one warp a tile, wgmma by
// one warpgroup.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor_core_probe/device.hpp"
#include "tensor_core_probe/gpu/instructions.cuh"

namespace samebits::cuda {

using backends::tensor_cores::job;
using backends::tensor_cores::line_words;
using backends::tensor_cores::rows_of;
using backends::tensor_cores::tile_columns;

/// Copies an operand's tile to shared memory, where it lies without swizzle, as matrices of 8 lines
/// of 16 bytes. Two matrices follow along K, 128 bytes apart; others along the lines, 256 bytes
/// apart. Returns the wgmma descriptor.
__device__ inline std::uint64_t shared_tile(std::uint32_t* tile, const std::uint32_t* from,
                                            int lines) {
  for (int i = static_cast<int>(threadIdx.x); i < lines * line_words;
       i += static_cast<int>(blockDim.x)) {
    const int line = i / line_words;
    const int word = i % line_words;
    tile[line / 8 * 64 + word / 4 * 32 + line % 8 * 4 + word % 4] = from[i];
  }
  constexpr std::uint64_t along_k = 128 / 16;
  constexpr std::uint64_t along_lines = 256 / 16;
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(tile));
  return (address & 0x3FFFF) / 16 | along_k << 16 | along_lines << 32;
}

/// Multiplies the A of each tile with the B of the tile `offset` farther by one instruction, into d,
/// an array like the job's C. One block per tile. For wgmma A is in registers in every second tile.
template <instruction Which>
__global__ void __launch_bounds__(2 * rows_of(Which))
    multiply_kernel(job j, std::uint32_t offset, std::uint32_t* d) {
  constexpr int rows = rows_of(Which);
  const std::uint32_t tile = blockIdx.x;
  const std::uint32_t* a = j.a + std::size_t{tile} * rows * line_words;
  const std::uint32_t* b = j.b + std::size_t{(tile + offset) % j.tiles} * tile_columns * line_words;
  const int line = static_cast<int>(threadIdx.x % 32 / 4);
  const int row = static_cast<int>(threadIdx.x / 32 * 16) + line;
  const int t = static_cast<int>(threadIdx.x % 4);
  const std::uint32_t* a_words = a + row * line_words + t;
  const std::uint32_t* b_words = b + line * line_words + t;
  fragments f = {{a_words[0], a_words[8 * line_words], a_words[4], a_words[8 * line_words + 4]},
                 {b_words[0], b_words[4]},
                 0,
                 0};
  if constexpr (is_wgmma(Which)) {
    __shared__ __align__(1024) std::uint32_t a_tile[rows * line_words];
    __shared__ __align__(1024) std::uint32_t b_tile[tile_columns * line_words];
    f.a_descriptor = shared_tile(a_tile, a, rows);
    f.b_descriptor = shared_tile(b_tile, b, tile_columns);
#if SAMEBITS_HAS_WGMMA
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
  }
  // Indices of the thread's results: two in one row, two in the eighth row below.
  const std::size_t first = (std::size_t{tile} * rows + row) * tile_columns + 2 * t;
  const std::size_t at[] = {first, first + 1, first + 8 * tile_columns,
                            first + 8 * tile_columns + 1};
  std::uint32_t words[4];
  const bool wide = j.rule.result.storage_bits == 32;
  for (int i = 0; i < 4; ++i) words[i] = wide ? j.c[at[i]] : 0;
  if (!wide) {
    words[0] = j.c[at[0]] | j.c[at[1]] << 16;
    words[1] = j.c[at[2]] | j.c[at[3]] << 16;
  }
  execute<Which>(words, f, (tile + offset) % 2 == 1);
  for (int i = 0; i < 4; ++i) {
    d[at[i]] = wide ? words[i] : words[i / 2] >> 16 * (i % 2) & 0xFFFFu;
  }
}

}  // namespace samebits::cuda
