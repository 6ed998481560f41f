// Runs mma.sync instructions: one warp per pair of tiles, pair after pair.
#include <utility>

#include "backends/cuda/common/launch_kernel.hpp"
#include "tensor_core_probe/gpu/kernels.cuh"

namespace samebits::cuda {
namespace {

constexpr int rows = backends::tensor_cores::rows_of(instruction{});

/// Multiplies each tile with its partners by one instruction, and compares. One warp per pair.
template <instruction Which>
__global__ void mma_kernel(device_job j) {
  const int row = static_cast<int>(threadIdx.x % 32 / 4);
  const int t = static_cast<int>(threadIdx.x % 4);
  const std::uint64_t warps = static_cast<std::uint64_t>(gridDim.x) * blockDim.x / 32;
  const std::uint64_t pairs = static_cast<std::uint64_t>(j.tiles) * j.partners;
  for (std::uint64_t p = (static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
       p < pairs; p += warps) {
    const uint2 of = tiles_of(j, p);
    const std::uint32_t* a = j.a + (static_cast<std::size_t>(of.x) * rows + row) * line_words + t;
    const std::uint32_t* b =
        j.b + (static_cast<std::size_t>(of.y) * tile_columns + row) * line_words + t;
    const fragments f = {
        {a[0], a[8 * line_words], a[4], a[8 * line_words + 4]}, {b[0], b[4]}, 0, 0};
    std::uint32_t d[4];
    load_c(j, of.x, rows, row, d);
    execute<Which>::run(d, f);
    compare(j, of.x, of.y, rows, row, d);
  }
}

template <int... I>
tensor_launcher launcher_of(int which, std::integer_sequence<int, I...>) {
  static constexpr tensor_launcher all[] = {[](const device_job& j, int blocks) {
    launch_kernel("tensor core kernel", mma_kernel<static_cast<instruction>(I)>, blocks, 128, 0,
                  nullptr, j);
  }...};
  return all[which];
}

}  // namespace

tensor_launcher find_mma(instruction which) {
  constexpr int count = backends::tensor_cores::mma_count;
  if (is_wgmma(which)) return nullptr;
  return launcher_of(static_cast<int>(which), std::make_integer_sequence<int, count>());
}

}  // namespace samebits::cuda
