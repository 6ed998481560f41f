// Negative log-likelihood: the sum of PyTorch 2.11's nll_loss over the rows of log-probabilities.
// Source: PyTorch's Loss.cu.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

/// Threads that add: 2^round(log2(rows / 16)), from 32 to 1024. Requires fewer than 2^35 rows.
SAMEBITS_HD constexpr int nll_threads(std::int64_t rows) {
  const std::int64_t sixteenth = rows / 16;
  int threads = warp_lanes;
  // the next power of two is nearer, in logarithms, if sixteenth is above threads * sqrt(2)
  while (threads < max_threads && sixteenth * sixteenth > std::int64_t{2} * threads * threads) {
    threads *= 2;
  }
  return threads;
}

/// The sum of -picked(row) over the rows, binary32 bits; picked() is +0 for an ignored row.
template <class Picked>
SAMEBITS_HD constexpr std::uint32_t nll_sum(std::int64_t rows, const Picked& picked) {
  std::uint32_t sums[max_threads] = {};
  const int threads = nll_threads(rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::uint32_t& sum = sums[row % threads];
    sum = ptx::sub(sum, picked(row));
  }
  return fold_halves(sums, threads,
                     [](std::uint32_t a, std::uint32_t b) { return ptx::add(a, b); });
}

}  // namespace samebits::numerics::torch_2_11
