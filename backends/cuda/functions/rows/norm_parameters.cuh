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

/// Whether a row's number follows that of the row before, all aligned to 32 bytes from row 0 on.
[[nodiscard]] SAMEBITS_HD inline bool has_dense_numbers(const row_operand& v) {
  return v.data == nullptr ||
         (v.row_stride == 4 && reinterpret_cast<std::uintptr_t>(v.data) % 32 == 0);
}

/// Computes the sums of blockDim.x * V columns, by blockDim.y threads a column, as PyTorch's. Cost: one
/// read of grad and in. V > 1 requires vectors of V elements.
template <class Numbers, int V>
__global__ void __launch_bounds__(1024) norm_parameters(const parameter_launch d) {
  if constexpr (Numbers::compiled) {
    using word = typename Numbers::word;
    using codes = row_codes<Numbers::bytes, V>;
    constexpr int rows_at_once = 8;  // torch::parameter_order::rows_of_thread
    __shared__ std::uint32_t weights[1024 * V], biases[1024 * V];
    const Numbers numbers(d.format);
    const std::int64_t col = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * V;
    const bool inside = col < d.cols;
    word weight[V] = {}, bias[V] = {};
    const bool dense = has_dense_numbers(d.mean) && has_dense_numbers(d.rstd);
    // `Whole`: all rows are there, and their means and rstds dense.
    const auto add_rows = [&]<bool Whole>(std::int64_t first) {
      codes grad[rows_at_once], x[rows_at_once];
      std::uint32_t mean[rows_at_once] = {}, rstd[rows_at_once] = {};
      const auto load_numbers = [&](const row_operand& v, std::uint32_t(&to)[rows_at_once]) {
        if (v.data == nullptr) return;
        if constexpr (Whole) {
          memcpy(to, __builtin_assume_aligned(v.data + first * 4, 32), sizeof to);
        } else {
          for (int k = 0; k < rows_at_once && first + k < d.rows; ++k) {
            to[k] = operand_row<4>(v, first + k).load(0);
          }
        }
      };
#pragma unroll
      for (int k = 0; k < rows_at_once; ++k) {
        if (!Whole && first + k >= d.rows) break;
        grad[k] = operand_row<Numbers::bytes>(d.grad, first + k).template load<V>(col);
        x[k] = operand_row<Numbers::bytes>(d.in, first + k).template load<V>(col);
      }
      load_numbers(d.mean, mean);
      load_numbers(d.rstd, rstd);
#pragma unroll
      for (int k = 0; k < rows_at_once; ++k) {
        if (!Whole && first + k >= d.rows) break;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const word g = numbers.value(grad[k].code(v));
          weight[v] = numerics::torch_2_11::with_product<word>(
              weight[v], g, numbers.value(x[k].code(v)), word(mean[k]), word(rstd[k]));
          bias[v] = add(bias[v], g);
        }
      }
    };
    const std::int64_t rows = inside ? d.rows : 0;
    for (std::int64_t first = std::int64_t{threadIdx.y} * rows_at_once; first < rows;
         first += std::int64_t{d.threads} * rows_at_once) {
      if (dense && first + rows_at_once <= rows) {
        add_rows.template operator()<true>(first);
      } else {
        add_rows.template operator()<false>(first);
      }
    }
    const unsigned place = threadIdx.y * blockDim.x + threadIdx.x;
    const auto column = [&](int v) { return v * blockDim.x * blockDim.y + place; };
#pragma unroll
    for (int v = 0; v < V; ++v) {
      weights[column(v)] = weight[v].bits;
      biases[column(v)] = bias[v].bits;
    }
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y >= half) continue;
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const unsigned at = column(v), other = at + half * blockDim.x;
        weights[at] = add(word(weights[at]), word(weights[other])).bits;
        biases[at] = add(word(biases[at]), word(biases[other])).bits;
      }
    }
    if (threadIdx.y != 0 || !inside) return;
    const auto store = [&](const row_operand& to, int v, std::uint32_t sum) {
      if (to.data != nullptr) operand_row<Numbers::bytes>(to, 0).store(col + v, numbers.code(sum));
    };
#pragma unroll
    for (int v = 0; v < V; ++v) {
      store(d.weight, v, weights[column(v)]);
      store(d.bias, v, biases[column(v)]);
    }
  }
}

/// Enqueues the sums of a call of one block (torch::parameter_order). Few columns are shared among more
/// blocks.
template <class Numbers>
void launch_norm_parameters(const parameter_launch& d, cudaStream_t stream) {
  constexpr std::int64_t multiprocessors = 132;  // of an H100 and an H200
  constexpr const char* what = "gradients of norms' parameters";
  unsigned columns = 32;
  const auto threads = [&] { return dim3(columns, static_cast<unsigned>(d.threads)); };
  const auto blocks = [&](std::int64_t of) {
    return static_cast<unsigned>((d.cols + of - 1) / of);
  };
  if constexpr (Numbers::native) {
    constexpr int bytes = 2 * Numbers::bytes;
    if (d.cols % 2 == 0 && d.cols >= 4096 && d.grad.has_vectors(bytes) && d.in.has_vectors(bytes)) {
      return launch_kernel(what, norm_parameters<Numbers, 2>, blocks(2 * columns), threads(), 0,
                           stream, d);
    }
  }
  while (columns > 8 && columns * d.threads > 32 && d.cols / columns < multiprocessors)
    columns /= 2;
  launch_kernel(what, norm_parameters<Numbers, 1>, blocks(columns), threads(), 0, stream, d);
}

}  // namespace samebits::cuda
