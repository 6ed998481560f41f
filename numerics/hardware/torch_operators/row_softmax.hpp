// Row softmax: softmax and log_softmax of one row as PyTorch 2.11 computes them on CUDA tensors,
// and their gradients.
//
// Rows are binary32 bits of numbers in the tensor's format. Results are rounded to the format by
// the caller. Source: PyTorch's SoftMax.cu and PersistentSoftmax.cuh.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/exp.hpp"
#include "numerics/hardware/cuda_functions/log.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

/// The largest number of a row; NaNs do not count. -Inf if there is no number.
SAMEBITS_HD constexpr std::uint32_t row_max(const std::uint32_t* x, std::int64_t n) {
  std::uint32_t largest = binary32::sign_bit | binary32::inf;
  for (std::int64_t i = 0; i < n; ++i) largest = ptx::lt(largest, x[i]) ? x[i] : largest;
  return largest;
}

/// x[i] = exp(x[i] - max) / sum
SAMEBITS_HD constexpr void softmax_row(const row_order& order, std::uint32_t* x, std::int64_t n) {
  const std::uint32_t max = row_max(x, n);
  for (std::int64_t i = 0; i < n; ++i) x[i] = cuda_13_0::exp(ptx::sub(x[i], max));
  const std::uint32_t sum = row_sum(order, n, [&](std::int64_t i) { return x[i]; });
  for (std::int64_t i = 0; i < n; ++i) x[i] = ptx::div(x[i], sum);
}

/// x[i] = (x[i] - max) - log(sum)
SAMEBITS_HD constexpr void log_softmax_row(const row_order& order, std::uint32_t* x,
                                           std::int64_t n) {
  const std::uint32_t max = row_max(x, n);
  for (std::int64_t i = 0; i < n; ++i) x[i] = ptx::sub(x[i], max);
  const std::uint32_t sum = row_sum(order, n, [&](std::int64_t i) { return cuda_13_0::exp(x[i]); });
  const std::uint32_t logarithm = cuda_13_0::log(sum);
  for (std::int64_t i = 0; i < n; ++i) x[i] = ptx::sub(x[i], logarithm);
}

/// grad[i] = p[i] - y[i] * sum of p, where p = grad * y is rounded to the format and y is softmax's
/// result.
SAMEBITS_HD constexpr void softmax_gradient_row(const row_order& order, format_id format,
                                                const std::uint32_t* y, std::uint32_t* grad,
                                                std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) grad[i] = stored(format, ptx::mul(grad[i], y[i]));
  const std::uint32_t sum = row_sum(order, n, [&](std::int64_t i) { return grad[i]; });
  for (std::int64_t i = 0; i < n; ++i) grad[i] = ptx::fma(ptx::neg(y[i]), sum, grad[i]);
}

/// grad[i] = grad[i] - exp(y[i]) * sum of grad, where y is log_softmax's result.
SAMEBITS_HD constexpr void log_softmax_gradient_row(const row_order& order, const std::uint32_t* y,
                                                    std::uint32_t* grad, std::int64_t n) {
  const std::uint32_t sum = row_sum(order, n, [&](std::int64_t i) { return grad[i]; });
  for (std::int64_t i = 0; i < n; ++i) {
    grad[i] = ptx::fma(ptx::neg(cuda_13_0::exp(y[i])), sum, grad[i]);
  }
}

}  // namespace samebits::numerics::torch_2_11
