// Runs wgmma instructions: one block of one warpgroup per pair of tiles, pair after pair. A is in
// registers for every second pair.
//
// Operands lie in shared memory without swizzle, as matrices of 8 lines of 16 bytes. Two matrices
// follow along K, 128 bytes apart; eight follow along the rows, 256 bytes apart.
#include <utility>

#include "backends/cuda/common/launch_kernel.hpp"
#include "tensor_core_probe/gpu/kernels.cuh"

namespace samebits::cuda {
namespace {

constexpr int first_wgmma = backends::tensor_cores::mma_count;
constexpr int rows = backends::tensor_cores::rows_of(static_cast<instruction>(first_wgmma));

/// Index in shared memory of a word of a line.
__device__ int word_index(int line, int word) {
  return line / 8 * 64 + word / 4 * 32 + line % 8 * 4 + word % 4;
}

/// The wgmma descriptor of an operand in shared memory.
__device__ std::uint64_t descriptor_of(const void* tile) {
  constexpr std::uint64_t along_k = 128 / 16;
  constexpr std::uint64_t along_lines = 256 / 16;
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(tile));
  return (address & 0x3FFFF) / 16 | along_k << 16 | along_lines << 32;
}

/// Multiplies each tile with its partners by one instruction, and compares. One block of 128
/// threads per pair.
template <instruction Which>
__global__ void __launch_bounds__(128) wgmma_kernel(device_job j) {
  __shared__ __align__(1024) std::uint32_t a_tile[rows * line_words];
  __shared__ __align__(1024) std::uint32_t b_tile[tile_columns * line_words];
  const int thread = static_cast<int>(threadIdx.x);
  fragments f = {{}, {}, descriptor_of(a_tile), descriptor_of(b_tile)};
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const std::uint64_t pairs = static_cast<std::uint64_t>(j.tiles) * j.partners;
  for (std::uint64_t p = blockIdx.x; p < pairs; p += gridDim.x) {
    const uint2 of = tiles_of(j, p);
    __syncthreads();
    for (int i = thread; i < rows * line_words; i += 128) {
      a_tile[word_index(i / line_words, i % line_words)] =
          j.a[static_cast<std::size_t>(of.x) * rows * line_words + i];
    }
    if (thread < tile_columns * line_words) {
      b_tile[word_index(thread / line_words, thread % line_words)] =
          j.b[static_cast<std::size_t>(of.y) * tile_columns * line_words + thread];
    }
#if SAMEBITS_HAS_WGMMA
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    std::uint32_t d[4];
    load_c(j, of.x, rows, row, d);
    if ((of.x + p) % 2 == 0) {
      execute<Which>::run(d, f);
    } else {
      for (int i = 0; i < 4; ++i) {
        f.a[i] = a_tile[word_index(row + 8 * (i % 2), thread % 4 + 4 * (i / 2))];
      }
      execute<Which>::run_registers(d, f);
    }
    compare(j, of.x, of.y, rows, row, d);
  }
}

template <int... I>
tensor_launcher launcher_of(int which, std::integer_sequence<int, I...>) {
  static constexpr tensor_launcher all[] = {[](const device_job& j, int blocks) {
    launch_kernel("tensor core kernel", wgmma_kernel<static_cast<instruction>(first_wgmma + I)>,
                  blocks, 128, 0, nullptr, j);
  }...};
  return all[which];
}

}  // namespace

tensor_launcher find_wgmma(instruction which) {
  constexpr int count = backends::tensor_cores::instruction_count - first_wgmma;
  if (!is_wgmma(which)) return nullptr;
  return launcher_of(static_cast<int>(which) - first_wgmma,
                     std::make_integer_sequence<int, count>());
}

}  // namespace samebits::cuda
