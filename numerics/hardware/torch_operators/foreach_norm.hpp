// Norms of a list's tensors: the sums of PyTorch 2.11's _foreach_norm, and the factor by which
// clip_grad_norm_ scales the tensors.
// Source: PyTorch's ForeachReduceOp.cu, block_reduce.cuh and clip_grad.py.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/row_order.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

inline constexpr std::int64_t foreach_chunk = 65536;  ///< elements that a block adds
inline constexpr int foreach_threads = 512;
inline constexpr int foreach_sums = 4 * foreach_threads;  ///< four of each thread

/// Whether a block that begins with `rest` elements of a tensor left reads four at once.
SAMEBITS_HD constexpr bool reads_vectors(std::int64_t rest) { return rest % 4 == 0; }

/// The sum to which a block adds its element i: sum number i / 512 of thread i % 512, or with
/// vectors sum number i % 4 of thread i / 4. Place `thread + 512 * number`.
SAMEBITS_HD constexpr int foreach_place(bool vectors, std::int64_t i) {
  const auto at = static_cast<int>(i % foreach_sums);
  return vectors ? at / 4 + at % 4 * foreach_threads : at;
}

/// The sum of a block's threads; the sums of one thread are added in order.
SAMEBITS_HD constexpr std::uint32_t foreach_block_sum(const std::uint32_t* sums, int of_thread) {
  std::uint32_t threads[foreach_threads] = {};
  const auto plus = [](std::uint32_t a, std::uint32_t b) { return ptx::add(a, b); };
  for (int i = 0; i < of_thread * foreach_threads; ++i) {
    std::uint32_t& sum = threads[i % foreach_threads];
    sum = plus(sum, sums[i]);
  }
  return fold_warps(threads, foreach_threads, warp_lanes, std::uint32_t{0}, plus);
}

/// The norm of a tensor from the sums of its blocks.
SAMEBITS_HD constexpr std::uint32_t foreach_norm_of(const std::uint32_t* blocks,
                                                    std::int64_t count) {
  std::uint32_t threads[foreach_threads] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t& sum = threads[i % foreach_threads];
    sum = ptx::add(sum, blocks[i]);
  }
  return ptx::sqrt(foreach_block_sum(threads, 1));
}

/// clip_grad_norm_'s factor of the gradients: max_norm / (norm + 10^-6), at most 1. Every step is
/// rounded to the gradients' format.
SAMEBITS_HD constexpr std::uint32_t clip_factor(format_id format, std::uint32_t norm,
                                                std::uint32_t max_norm) {
  constexpr std::uint32_t tiny = 0x358637BDu;  // 10^-6
  const std::uint32_t sum = stored(format, ptx::add(norm, tiny));
  const std::uint32_t inverse = stored(format, ptx::div(binary32::one, sum));
  const std::uint32_t factor = stored(format, ptx::mul(inverse, max_norm));
  return ptx::lt(binary32::one, factor) ? binary32::one : factor;
}

}  // namespace samebits::numerics::torch_2_11
