// Norm tiles: quantizes norms of rows in 1 x 128 tiles, which no global memory holds.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "backends/cuda/functions/rows/row_kernels.cuh"
#include "backends/cuda/quantize/tiles/lane_tiles.cuh"

namespace samebits::cuda {

/// Computes a norm of every row, and codes and scales of its tiles. One block of
/// torch::layer_norm_threads a row: it computes the norm as rows_in_registers does, into shared memory
/// of one row, then quantizes it, 16 threads a tile. Operands: as row_in_registers requires, and
/// tile_task::aligned. Cost: one read of each operand, one write of the codes.
template <class Numbers, format_id From, row_function F, int J>
__global__ void __launch_bounds__(torch::layer_norm_threads, 4)
    norm_tiles_kernel(const row_launch d, const __grid_constant__ tile_task t, const format_id to) {
  if constexpr (Numbers::compiled) {
    constexpr int E = vector_length;
    using threads = row_threads<typename Numbers::word>;
    using row_type = row_in_registers<Numbers, F, 4, J, 1>;
    extern __shared__ uint4 memory[];
    __shared__ typename threads::shared_sums sums;
    std::byte* const norm = reinterpret_cast<std::byte*>(memory);
    threads of_row(sums, static_cast<int>(threadIdx.x), torch::layer_norm_threads);
    const int n = static_cast<int>(d.orders.n);
    for (std::int64_t row = blockIdx.x; row < d.rows; row += gridDim.x) {
      row_type held(d, of_row, row);
      held.store_at(norm);
      row_steps<row_type>{held}.compute();
      __syncthreads();
      const bool skips = t.skip != nullptr && *t.skip != 0;
      for (int first = 0; first < n && !skips; first += torch::layer_norm_threads * E) {
        const int col = first + static_cast<int>(threadIdx.x) * E;
        const bool inside = col < n;
        row_codes<Numbers::bytes, E> codes = {};
        if (inside) codes = operand_row<Numbers::bytes>(norm).template load<E>(col);
        quantize_lanes<From>(t, to, codes, static_cast<std::uint64_t>(row),
                             static_cast<std::uint32_t>(col), inside);
      }
      __syncthreads();  // before the next row is stored
    }
  }
}

/// Enqueues the kernel if it serves the call, else returns false.
template <class Numbers, format_id From, row_function F>
bool launch_norm_tiles_of(const row_launch& d, const tile_task& task, format_id to,
                          cudaStream_t stream) {
  constexpr int vectors = held_elements<Numbers, F, 4> / 4;
  constexpr int threads = torch::layer_norm_threads;
  constexpr const char* what = "fused operators: quantize";
  if (d.orders.of_row(0).vector != 4 || d.orders.n > threads * 4 * vectors ||
      !has_row_vectors<Numbers>(d, 4)) {
    return false;
  }
  const auto kernel = norm_tiles_kernel<Numbers, From, F, vectors>;
  const auto bytes = static_cast<std::size_t>(d.orders.n * Numbers::bytes);
  allow_shared_memory(what, kernel, bytes);
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(d.rows, 1 << 30));
  launch_kernel(what, kernel, blocks, threads, bytes, stream, d, task, to);
  return true;
}

}  // namespace samebits::cuda
