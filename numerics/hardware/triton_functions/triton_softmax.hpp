// Triton softmax: tl.softmax of a row that is one block, by Triton 3.6 on sm_90.
//
// Source: tl.softmax of Triton 3.6.0, and the layouts and PTX that it compiles to.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/row_softmax.hpp"
#include "numerics/hardware/triton_functions/full_divide.hpp"
#include "numerics/hardware/triton_functions/triton_functions.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::triton_3_6 {

/// The smallest power of two that is not below n.
SAMEBITS_HD constexpr std::int64_t block_of(std::int64_t n) {
  std::int64_t block = 1;
  while (block < n) block *= 2;
  return block;
}

/// The order in which tl.sum adds a row of n elements in a block of the next power of two. Thread t
/// of `warps` warps adds the vectors t, t + T, ... of `vector` elements. A block with fewer vectors
/// than threads has one thread for each vector.
SAMEBITS_HD constexpr torch_2_11::row_order sum_order(std::int64_t n, int warps, int vector) {
  const std::int64_t block = block_of(n);
  const std::int64_t all = std::int64_t{warps} * torch_2_11::warp_lanes;
  while (vector > 1 && vector > block / all) vector /= 2;
  const std::int64_t vectors = block / vector;
  const int threads = static_cast<int>(vectors < all ? vectors : all);
  const bool one_warp = threads <= torch_2_11::warp_lanes;
  using torch_2_11::thread_sums;
  torch_2_11::row_order order{threads, one_warp ? thread_sums::halves : thread_sums::warps, vector};
  order.body = n;
  return order;
}

/// x[i] = exp(x[i] - max) / sum, with tl.exp and div.full. Elements of the block behind the row
/// are -Inf and add nothing.
SAMEBITS_HD constexpr void softmax_row(const torch_2_11::row_order& order, std::uint32_t* x,
                                       std::int64_t n) {
  const std::uint32_t max = torch_2_11::row_max(x, n);
  for (std::int64_t i = 0; i < n; ++i) x[i] = exp(ptx::sub(x[i], max));
  const std::uint32_t sum = torch_2_11::row_sum(order, n, [&](std::int64_t i) { return x[i]; });
  for (std::int64_t i = 0; i < n; ++i) x[i] = full_divide(x[i], sum);
}

}  // namespace samebits::numerics::triton_3_6
