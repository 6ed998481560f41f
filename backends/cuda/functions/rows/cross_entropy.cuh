// Cross entropy: the kernels beside those of rows, which count the targets and add the losses.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/functions/rows/row_kernels.cuh"
#include "backends/dispatch/calls/row_functions.hpp"
#include "numerics/hardware/torch_operators/cross_entropy.hpp"
#include "numerics/hardware/torch_operators/nll_loss.hpp"

namespace samebits::cuda {

/// The rows of a call whose targets are not ignored; in all threads. One block.
__device__ inline std::int64_t counted_rows(const loss_launch& d, std::int64_t rows) {
  __shared__ unsigned long long count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  unsigned long long own = 0;
  for (std::int64_t row = threadIdx.x; row < rows; row += blockDim.x) {
    own += d.targets[row] != d.ignore_index ? 1 : 0;
  }
  atomicAdd(&count, own);
  __syncthreads();
  return static_cast<std::int64_t>(count);
}

/// Stores number i of the losses, which are in the rows' format or in binary32.
template <int Bytes>
__device__ void store_loss(const loss_launch& d, std::int64_t i, std::uint32_t number) {
  const std::uint32_t code = torch::code_of(d.rule.loss_format, number);
  if (d.rule.loss_format == format_id::fp32) return operand_row<4>(d.loss, 0).store(i, code);
  operand_row<Bytes>(d.loss, 0).store(i, code);
}

/// Computes the loss, a sum or a mean, from d.loss.picked. One block of torch::nll_threads() threads,
/// as PyTorch's.
template <class Numbers>
__global__ void __launch_bounds__(torch::max_threads) add_losses(const row_launch d) {
  if constexpr (Numbers::compiled) {
    using word = typename Numbers::word;
    __shared__ word sums[torch::max_threads];
    const int t = static_cast<int>(threadIdx.x);
    torch::cross_entropy_rule rule = d.loss.rule;
    rule.counted = counted_rows(d.loss, d.rows);
    word sum = 0u;
    for (std::int64_t row = t; row < d.rows; row += blockDim.x) {
      sum = torch::sub(sum, d.loss.picked[row]);
    }
    sums[t] = sum;
    for (int step = static_cast<int>(blockDim.x) / 2; step > 0; step /= 2) {
      __syncthreads();
      if (t < step) sums[t] = add(sums[t], sums[t + step]);
    }
    if (t != 0) return;
    store_loss<Numbers::bytes>(d.loss, 0, torch::nll_loss(rule, sums[0].bits));
  }
}

/// Computes every row's loss from d.loss.picked. One thread a row.
template <class Numbers>
__global__ void store_losses(const row_launch d) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t row = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < d.rows;
       row += step) {
    const std::uint32_t loss =
        d.loss.targets[row] == d.loss.ignore_index ? 0 : numerics::ptx::neg(d.loss.picked[row]);
    store_loss<Numbers::bytes>(d.loss, row, loss);
  }
}

/// Computes d.loss.factor, into `factor`, from the gradient of the loss. One block.
template <class Numbers>
__global__ void find_factor(const row_launch d, std::uint32_t* factor) {
  torch::cross_entropy_rule rule = d.loss.rule;
  rule.counted = counted_rows(d.loss, d.rows);
  if (threadIdx.x != 0) return;
  const std::uint32_t grad = code_of_gradient<Numbers::bytes>(d.loss, 0);
  *factor = torch::loss_gradient_of(rule, torch::value_of(rule.loss_format, grad), false).target;
}

/// Enqueues the losses of a call from d.loss.picked.
template <class Numbers>
void launch_losses(const row_launch& d, cudaStream_t stream) {
  constexpr const char* what = "cross entropy";
  if (d.loss.rule.reduces()) {
    const auto threads = static_cast<unsigned>(torch::nll_threads(d.rows));
    return launch_kernel(what, add_losses<Numbers>, 1, threads, 0, stream, d);
  }
  constexpr int threads = 256;
  launch_kernel(what, store_losses<Numbers>, grid_for(static_cast<std::uint64_t>(d.rows), threads),
                threads, 0, stream, d);
}

/// Enqueues the part of a call that reads the logits.
template <class Numbers>
void launch_rows_of_loss(const row_launch& d, cudaStream_t stream) {
  if (d.loss.grad.data != nullptr) {
    launch_in_memory<Numbers, row_function::cross_entropy_gradient>(d, stream);
  } else if (d.rows > 0) {
    launch_in_memory<Numbers, row_function::picked_log_softmax>(d, stream);
  }
}

/// Enqueues a call that wants a loss or a gradient that is not empty. `words`: device memory of
/// d.rows + 1 words.
template <class Numbers>
void launch_cross_entropy(row_launch d, std::uint32_t* words, cudaStream_t stream) {
  const bool wants_loss = d.loss.loss.data != nullptr, wants_gradient = d.loss.grad.data != nullptr;
  if (wants_loss) d.loss.picked = words + 1;
  if (wants_gradient && d.loss.rule.reduces()) {
    launch_kernel("cross entropy", find_factor<Numbers>, 1, torch::max_threads, 0, stream, d,
                  words);
    d.loss.factor = words;
  }
  bool upcast = false;
  if constexpr (Numbers::bytes != 4) {
    upcast = d.loss.rule.format != d.format;
    if (upcast) launch_rows_of_loss<upcast_rows<Numbers>>(d, stream);
  }
  if (!upcast) launch_rows_of_loss<Numbers>(d, stream);
  if (wants_loss) launch_losses<Numbers>(d, stream);
}

}  // namespace samebits::cuda
