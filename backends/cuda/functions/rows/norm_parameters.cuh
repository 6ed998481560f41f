// Gradients of LayerNorm's and RMSNorm's parameters: sums over the rows of each column.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/rows/row_formats.cuh"
#include "backends/cuda/functions/rows/row_operands.cuh"
#include "numerics/hardware/torch_operators/norm_parameters.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"

namespace samebits::cuda {

/// The parameters of the kernel. mean has no data for RMSNorm; weight or bias if it is not wanted.
struct parameter_launch {
  row_operand grad, in, mean, rstd, weight, bias;
  std::int64_t rows, cols;
  format_id format;
  int threads;  ///< of torch::parameter_order
};

/// Computes the sums of blockDim.x columns, by blockDim.y threads a column, as PyTorch's. Cost: one
/// read of grad and in.
template <class Numbers>
__global__ void __launch_bounds__(1024) norm_parameters(const parameter_launch d) {
  if constexpr (Numbers::compiled) {
    using word = typename Numbers::word;
    constexpr int rows_at_once = 8;  // torch::parameter_order::rows_of_thread
    __shared__ std::uint32_t weights[1024], biases[1024];
    const Numbers numbers(d.format);
    const std::int64_t col = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    const bool inside = col < d.cols;
    word weight = 0u, bias = 0u;
    const auto number_at = [&](const row_operand& v, std::int64_t row) -> word {
      return v.data == nullptr ? 0u : operand_row<4>(v, row).load(0);
    };
    for (std::int64_t first = std::int64_t{threadIdx.y} * rows_at_once; first < d.rows;
         first += std::int64_t{d.threads} * rows_at_once) {
      std::uint32_t grad[rows_at_once], x[rows_at_once];
#pragma unroll
      for (int k = 0; k < rows_at_once; ++k) {
        if (!inside || first + k >= d.rows) continue;
        grad[k] = operand_row<Numbers::bytes>(d.grad, first + k).load(col);
        x[k] = operand_row<Numbers::bytes>(d.in, first + k).load(col);
      }
#pragma unroll
      for (int k = 0; k < rows_at_once; ++k) {
        if (!inside || first + k >= d.rows) continue;
        const word g = numbers.value(grad[k]);
        weight = numerics::torch_2_11::with_product<word>(weight, g, numbers.value(x[k]),
                                                          number_at(d.mean, first + k),
                                                          number_at(d.rstd, first + k));
        bias = add(bias, g);
      }
    }
    const auto place = threadIdx.y * blockDim.x + threadIdx.x;
    weights[place] = weight.bits;
    biases[place] = bias.bits;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y >= half) continue;
      const auto other = place + half * blockDim.x;
      weights[place] = add(word(weights[place]), word(weights[other])).bits;
      biases[place] = add(word(biases[place]), word(biases[other])).bits;
    }
    if (threadIdx.y != 0 || !inside) return;
    const auto store = [&](const row_operand& v, std::uint32_t sum) {
      if (v.data != nullptr) operand_row<Numbers::bytes>(v, 0).store(col, numbers.code(sum));
    };
    store(d.weight, weights[place]);
    store(d.bias, biases[place]);
  }
}

/// Enqueues the sums of a call of one block (torch::parameter_order). Few columns are shared among more
/// blocks.
template <class Numbers>
void launch_norm_parameters(const parameter_launch& d, cudaStream_t stream) {
  constexpr std::int64_t multiprocessors = 132;  // of an H100 and an H200
  unsigned columns = 32;
  while (columns > 8 && columns * d.threads > 32 && d.cols / columns < multiprocessors)
    columns /= 2;
  const auto blocks = static_cast<unsigned>((d.cols + columns - 1) / columns);
  launch_kernel("gradients of norms' parameters", norm_parameters<Numbers>, blocks,
                dim3(columns, static_cast<unsigned>(d.threads)), 0, stream, d);
}

}  // namespace samebits::cuda
