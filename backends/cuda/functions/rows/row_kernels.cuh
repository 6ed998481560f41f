// Row kernels: the kernels of functions of rows, and their launches.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/rows/row_operands.cuh"
#include "backends/cuda/functions/rows/row_steps.cuh"
#include "backends/cuda/functions/rows/rows_in_memory.cuh"
#include "backends/cuda/functions/rows/rows_in_registers.cuh"
#include "samebits/core/table.hpp"

namespace samebits::cuda {

/// Computes function F of every row. blockDim.x threads a row, Count if it is not 0; blockDim.y rows a
/// block at a time, Blocks blocks a multiprocessor. Operands: as row_in_registers requires. Cost: one
/// read of each operand.
template <class Numbers, row_function F, int V, int J, int A, int Threads, int Count, int Blocks>
__global__ void __launch_bounds__(Threads, Blocks) rows_in_registers(const row_launch d) {
  if constexpr (Numbers::compiled) {
    using threads = row_threads<typename Numbers::word>;
    __shared__ typename threads::shared_sums sums;
    threads of_row(sums, static_cast<int>(threadIdx.x),
                   Count > 0 ? Count : static_cast<int>(blockDim.x));
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
    for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y; first < d.rows;
         first += step) {
      const row_in_registers<Numbers, F, V, J, A> row(d, of_row, first + threadIdx.y);
      row_steps<row_in_registers<Numbers, F, V, J, A>>{row}.compute();
    }
  }
}

/// Threads of rows_in_memory: two blocks of half of PyTorch's most, so that one computes while the
/// other waits for memory.
inline constexpr int max_threads_in_memory = torch::max_threads / 2;

/// The same by row_in_memory, for all operands and orders of sums. Shared memory: copies of the rows
/// that are read, if Copied, or of d.copied elements of a row.
template <class Numbers, row_function F, int V, bool Copied>
__global__ void __launch_bounds__(max_threads_in_memory, 2) rows_in_memory(const row_launch d) {
  if constexpr (Numbers::compiled) {
    using word = typename Numbers::word;
    using row_type = row_in_memory<Numbers, F, V, Copied>;
    if constexpr (F == row_function::cross_entropy_gradient) {
      if (is_known<Numbers::bytes>(d.loss)) return;
    }
    extern __shared__ uint4 copies[];
    __shared__ typename row_threads<word>::shared_sums sums;
    __shared__ word words[torch::max_threads];
    row_threads<word> of_row(sums, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
    const std::int64_t step = std::int64_t{gridDim.x} * blockDim.y;
    for (std::int64_t first = std::int64_t{blockIdx.x} * blockDim.y; first < d.rows;
         first += step) {
      const row_type row(d, of_row, first + threadIdx.y, reinterpret_cast<std::byte*>(copies),
                         words);
      row_steps<row_type>{row}.compute();
      if (Copied || d.copied > 0) __syncthreads();  // before the next row's copy
    }
  }
}

/// Enqueues a kernel on the rows of a call, by `threads` threads a row: parts of a warp, or a block.
template <class Kernel>
void launch_rows(const Kernel& kernel, const row_launch& d, int threads, std::size_t shared,
                 cudaStream_t stream) {
  constexpr int threads_of_block = 128;
  const int rows = threads > torch::warp_lanes ? 1 : threads_of_block / threads;
  const std::int64_t blocks = std::min<std::int64_t>((d.rows + rows - 1) / rows, 1 << 30);
  launch_kernel("functions of rows", kernel, static_cast<unsigned>(blocks),
                dim3(static_cast<unsigned>(threads), static_cast<unsigned>(rows)), shared, stream,
                d);
}

/// Enqueues rows_in_memory. LayerNorm's blocks of few threads read the rows again: copies would leave
/// room for too few of them.
template <class Numbers, row_function F>
void launch_in_memory(const row_launch& d, cudaStream_t stream) {
  constexpr int vector = backends::is_norm(F) ? 4 : Numbers::vector;
  const int threads =
      std::clamp(d.orders.of_row(0).threads, torch::warp_lanes, max_threads_in_memory);
  if constexpr (Numbers::native && !backends::is_norm(F)) {
    // The kernel's other arrays and the copies fit the 227 KiB of a block on compute capability 9.0.
    constexpr std::int64_t most = 220 * 1024;
    const auto kernel = rows_in_memory<Numbers, F, vector, true>;
    const std::int64_t bytes = copied_elements(d.orders.n, Numbers::bytes) * Numbers::bytes *
                               (backends::is_gradient(F) ? 2 : 1);
    if (threads > torch::warp_lanes && bytes <= most) {
      allow_shared_memory("functions of rows", kernel, static_cast<std::size_t>(bytes));
      return launch_rows(kernel, d, threads, static_cast<std::size_t>(bytes), stream);
    }
  }
  constexpr int loaded = Numbers::native ? vector : 1;
  const auto kernel = rows_in_memory<Numbers, F, loaded, false>;
  if constexpr (row_vectors<Numbers, F>::splits) {
    constexpr int shared = 104 * 1024;  // two blocks of a multiprocessor have it
    if (threads > torch::warp_lanes) {
      row_launch begun = d;
      begun.copied = (shared - 2 * 16) / Numbers::bytes;
      allow_shared_memory("functions of rows", kernel, shared);
      return launch_rows(kernel, begun, threads, shared, stream);
    }
  }
  launch_rows(kernel, d, threads, 0, stream);
}

/// Whether row_in_registers can read rows in vectors of `vector` elements.
template <class Numbers>
bool has_row_vectors(const row_launch& d, int vector) {
  const int bytes = vector * Numbers::bytes;
  const auto fits = [&](const row_operand& v) { return v.data == nullptr || v.has_vectors(bytes); };
  return d.orders.n % vector == 0 && fits(d.in) && fits(d.grad) && fits(d.weight) && fits(d.bias) &&
         fits(d.sum) && fits(d.out);
}

/// Elements that a thread holds in vectors of V: what fits 128 registers, where a code of 16 bits in a
/// vector of one has a register of its own.
template <class Numbers, row_function F, int V>
inline constexpr int held_elements = (backends::is_gradient(F) || backends::adds_rows(F)) &&
                                             (V == 1 || Numbers::bytes == 4)
                                         ? 32
                                         : 64;

/// Whether softmax of scores, or its gradient, is left to rows_in_memory, so that fewer kernels are
/// compiled: rows of more than 8,192 elements, and gradients of odd lengths.
template <row_function F, int V, int J>
inline constexpr bool left_to_memory = backends::is_of_scores(F) &&
                                       (J % 3 == 0 || (V == 1 && backends::is_gradient(F)));

/// Enqueues rows_in_registers for rows of up to J vectors a thread. Count: `threads`, or 0.
template <class Numbers, row_function F, int V, int J, int A, int Threads, int Count, int Blocks>
bool launch_of_block(const row_launch& d, int threads, cudaStream_t stream) {
  if (d.orders.n > std::int64_t{threads} * V * J || !has_row_vectors<Numbers>(d, V)) return false;
  if constexpr (!left_to_memory<F, V, J>) {
    launch_rows(rows_in_registers<Numbers, F, V, J, A, Threads, Count, Blocks>, d, threads, 0,
                stream);
    return true;
  }
  return false;
}

/// Enqueues rows_in_registers for rows that one warp of PyTorch's adds: 32 / V threads a row.
template <class Numbers, row_function F, int V>
bool launch_of_warp(const row_launch& d, cudaStream_t stream) {
  constexpr int registers = held_elements<Numbers, F, V>;
  constexpr int threads = torch::warp_lanes / V;
  // Masks of scores would spill registers.
  constexpr int blocks =
      backends::is_of_scores(F) && V <= (backends::is_gradient(F) ? 2 : 1) ? 3 : 4;
  return launch_of_block<Numbers, F, V, registers / V, V, 128, threads, blocks>(d, threads, stream);
}

/// Enqueues rows_in_registers if it serves the call, else returns false.
template <class Numbers, row_function F>
bool launch_in_registers(const row_launch& d, cudaStream_t stream) {
  if (d.orders.rule != function_rule::torch_2_11) return false;
  const torch::row_order order = d.orders.of_row(0);
  constexpr int vector = 16 / Numbers::bytes;
  if constexpr (backends::is_norm(F)) {
    constexpr int vectors = held_elements<Numbers, F, 4> / 4;
    constexpr int threads = torch::layer_norm_threads;
    if (order.vector != 4) return false;
    // Longer rows: fewer blocks at a time, whose threads hold twice the codes.
    constexpr int blocks =
        Numbers::bytes == 2 && !backends::is_gradient(F) && !backends::adds_rows(F) ? 3 : 2;
    return launch_of_block<Numbers, F, 4, vectors, 1, threads, threads, 4>(d, threads, stream) ||
           launch_of_block<Numbers, F, 4, 2 * vectors, 1, threads, threads, blocks>(d, threads,
                                                                                    stream);
  } else {
    if (order.combine == torch::thread_sums::halves) {
      return launch_of_warp<Numbers, F, 8>(d, stream) || launch_of_warp<Numbers, F, 2>(d, stream) ||
             launch_of_warp<Numbers, F, 1>(d, stream);
    }
    // Whether a whole row of vectors is the body, and so is every other row; and whether a warp's sums
    // are combined by halves, as they are here.
    const bool all_body = order.vector == vector && order.body == d.orders.n &&
                          order.combine == torch::thread_sums::warps;
    if constexpr (backends::is_gradient(F)) {
      return all_body &&
             (launch_of_block<Numbers, F, vector, 2, 1, 512, 0, 2>(d, order.threads, stream) ||
              launch_of_block<Numbers, F, vector, 6, 1, 512, 0, 1>(d, order.threads, stream));
    } else {
      constexpr int max_threads = torch::max_threads, threads = max_threads / vector;
      if (all_body) {
        return launch_of_block<Numbers, F, vector, 3, 1, max_threads, max_threads, 1>(
            d, order.threads, stream);
      }
      return order.vector == 1 &&
             (launch_of_block<Numbers, F, vector, 8, vector, threads, threads, 512 / threads>(
                  d, threads, stream) ||
              launch_of_block<Numbers, F, vector, 9, vector, threads, threads, 512 / threads>(
                  d, threads, stream));
    }
  }
}

/// Enqueues the function of a call.
template <class Numbers>
void launch_function_of_rows(const row_launch& d, cudaStream_t stream) {
  constexpr int functions = static_cast<int>(row_function::picked_log_softmax);  // of row calls
  with_enumerator<row_function, functions>(d.orders.of, [&]<row_function F>() {
    if constexpr (Numbers::native) {
      if (launch_in_registers<Numbers, F>(d, stream)) return;
    }
    launch_in_memory<Numbers, F>(d, stream);
  });
}

}  // namespace samebits::cuda
