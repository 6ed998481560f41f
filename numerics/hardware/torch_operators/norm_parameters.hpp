// Gradients of LayerNorm's and RMSNorm's parameters: which thread of PyTorch 2.11's kernels adds
// which row. Source: PyTorch's layer_norm_kernel.cu.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

/// How the rows of one column become sums. A thread adds its rows in rising order, to +0; the
/// threads' sums are folded by halves. With several blocks, their sums, in the tensor's format, are
/// the rows of a matrix that torch.sum adds.
struct parameter_order {
  int threads;         ///< of a block; a power of two
  int rows_of_thread;  ///< consecutive rows that a thread adds before the next thread's
  std::int64_t blocks;
  std::int64_t rows_of_block;

  [[nodiscard]] SAMEBITS_HD constexpr int thread_of(std::int64_t row) const {
    return static_cast<int>(row % rows_of_block / rows_of_thread % threads);
  }
};

/// The order for a matrix of at least one row.
SAMEBITS_HD constexpr parameter_order norm_parameter_order(std::int64_t rows, std::int64_t cols,
                                                           int multiprocessors) {
  constexpr std::int64_t columns_of_block = 32;
  constexpr int rows_of_small_block = 32;
  if (rows > 65536 && cols / columns_of_block < multiprocessors / 2) {
    const std::int64_t blocks = (rows + rows_of_small_block - 1) / rows_of_small_block;
    return {1, rows_of_small_block, blocks, rows_of_small_block};
  }
  return {rows < 64 ? 1 : rows < 128 ? 8 : rows < 256 ? 16 : 32, 8, 1, rows};
}

}  // namespace samebits::numerics::torch_2_11
