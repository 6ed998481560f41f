// Row order: which thread of a CUDA block adds which element of a row, and how PyTorch 2.11's
// kernels combine the threads' sums.
//
//   row   | head: one element a thread | body: vectors | rest: one element a thread |
//          ^ `shift` elements behind a 16-byte boundary
//
// Source: PyTorch's SoftMax.cu, PersistentSoftmax.cuh, layer_norm_kernel.cu and block_reduce.cuh.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics::torch_2_11 {

inline constexpr int warp_lanes = 32;
inline constexpr int max_threads = 1024;

SAMEBITS_HD constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
SAMEBITS_HD constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// How the sums of a block's threads become one sum.
enum class thread_sums : std::uint8_t {
  halves,      ///< t + (t + T/2) for T/2 threads, and so on: the exchanges within one warp
  warps,       ///< halves within each warp, then halves of the warps' sums
  sequential,  ///< the 32 sums of each warp one after another, then the warps' sums
};

/// The threads that add a row's elements. Every thread adds its elements in rising order.
struct row_order {
  int threads = 0;
  thread_sums combine = thread_sums::halves;
  int vector = 1;          ///< elements of the body that one thread adds together
  std::int64_t shift = 0;  ///< elements from a 16-byte boundary to the row
  std::int64_t head = 0;   ///< elements of the head
  std::int64_t body = 0;   ///< elements of the body: the rest, or a multiple of vector * threads

  /// The thread that adds element i.
  [[nodiscard]] SAMEBITS_HD constexpr int thread_of(std::int64_t i) const {
    if (i < head) return static_cast<int>(i + shift);
    i -= head;
    return static_cast<int>((i < body ? i / vector : i) % threads);
  }
};

/// Elements of a format in 16 bytes.
SAMEBITS_HD constexpr int vector_of(format_id format) { return format == format_id::fp32 ? 4 : 8; }

/// One warp adds a row of n <= 2048 elements: lane i mod W adds element i, where W is the smallest
/// power of two that is not below n, at most 32.
SAMEBITS_HD constexpr row_order warp_order(std::int64_t n) {
  int lanes = 1;
  while (lanes < warp_lanes && lanes < n) lanes *= 2;
  return {lanes};
}

/// PyTorch's ilpReduce: vectors between 16-byte boundaries, single elements before and after.
SAMEBITS_HD constexpr row_order vector_order(std::int64_t n, std::int64_t shift, int threads,
                                             int vector, thread_sums combine) {
  row_order order{threads, combine, vector, shift};
  if (shift > 0) order.head = n < threads - shift ? n : threads - shift;
  const std::int64_t rest = n - order.head;
  order.body = rest - rest % (std::int64_t{vector} * threads);
  return order;
}

/// Whether a row of n elements lies in vectors of 16 bytes and fits a block's 48 KiB of shared
/// memory beside one sum of each warp.
SAMEBITS_HD constexpr bool fits_shared_memory(format_id format, std::int64_t n, std::int64_t shift,
                                              int threads) {
  constexpr int memory = 48 * 1024;  // bytes
  const int bytes = 16 / vector_of(format);
  const int sums = threads / warp_lanes * 4;
  return shift == 0 && n % vector_of(format) == 0 && n < (memory - sums) / bytes;
}

/// The order in which softmax and log_softmax add a row of n elements. `shift`: elements from a
/// 16-byte boundary to the row.
SAMEBITS_HD constexpr row_order softmax_order(format_id format, std::int64_t n,
                                              std::int64_t shift) {
  if (n <= 2048) return warp_order(n);
  constexpr int threads = max_threads;
  row_order order{threads, thread_sums::warps};
  constexpr int max_registers = 9;  // elements that a thread holds in registers
  if (n <= std::int64_t{max_registers} * threads) return order;
  const int vector = vector_of(format);
  if (!fits_shared_memory(format, n, shift, threads)) {
    return vector_order(n, shift, threads, vector, thread_sums::warps);
  }
  order.vector = vector;
  order.body = n;
  return order;
}

/// The order in which the gradients of softmax and log_softmax add a row of n elements.
SAMEBITS_HD constexpr row_order softmax_gradient_order(format_id format, std::int64_t n,
                                                       std::int64_t shift) {
  if (n <= 1024) return warp_order(n);
  const int vector = vector_of(format);
  const std::int64_t vectors = n / vector < max_threads ? n / vector : max_threads;
  int threads = warp_lanes;
  while (threads < vectors / 2) threads *= 2;
  if (!fits_shared_memory(format, n, shift, threads)) {
    return vector_order(n, shift, threads, vector, thread_sums::sequential);
  }
  row_order order{threads, thread_sums::warps, vector};
  order.body = n;
  return order;
}

/// sums[t] = combine(sums[t], sums[t + count/2]) for t < count/2, and so on: sums[0] is the result.
template <class Sum, class Combine>
SAMEBITS_HD constexpr Sum fold_halves(Sum* sums, int count, const Combine& combine) {
  for (int step = count / 2; step > 0; step /= 2) {
    for (int t = 0; t < step; ++t) sums[t] = combine(sums[t], sums[t + step]);
  }
  return sums[0];
}

/// Folds each warp's sums, then `lanes` of the warps' sums; lanes beyond the warps hold `empty`.
template <class Sum, class Combine>
SAMEBITS_HD constexpr Sum fold_warps(Sum* sums, int threads, int lanes, const Sum& empty,
                                     const Combine& combine) {
  Sum of_warps[warp_lanes] = {};
  for (int warp = 0; warp < lanes; ++warp) {
    const int first = warp * warp_lanes;
    of_warps[warp] = first < threads ? fold_halves(sums + first, warp_lanes, combine) : empty;
  }
  return fold_halves(of_warps, lanes, combine);
}

/// The sum of the threads' sums.
SAMEBITS_HD constexpr std::uint32_t combined(const row_order& order, std::uint32_t* sums) {
  const auto plus = [](std::uint32_t a, std::uint32_t b) { return ptx::add(a, b); };
  if (order.combine == thread_sums::halves) return fold_halves(sums, order.threads, plus);
  if (order.combine == thread_sums::warps) {
    return fold_warps(sums, order.threads, warp_lanes, std::uint32_t{0}, plus);
  }
  std::uint32_t total = 0;
  for (int warp = 0; warp < order.threads / warp_lanes; ++warp) {
    std::uint32_t sum = 0;
    for (int lane = 0; lane < warp_lanes; ++lane) sum = plus(sum, sums[warp * warp_lanes + lane]);
    total = plus(total, sum);
  }
  return total;
}

/// The sum of a row, binary32 bits: each thread's sum becomes with_element(sum, i) for its elements
/// i.
template <class WithElement>
SAMEBITS_HD constexpr std::uint32_t row_total(const row_order& order, std::int64_t n,
                                              const WithElement& with_element) {
  std::uint32_t sums[max_threads] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint32_t& sum = sums[order.thread_of(i)];
    sum = with_element(sum, i);
  }
  return combined(order, sums);
}

/// The sum of term(0), ..., term(n - 1), binary32 bits.
template <class Term>
SAMEBITS_HD constexpr std::uint32_t row_sum(const row_order& order, std::int64_t n,
                                            const Term& term) {
  return row_total(order, n,
                   [&](std::uint32_t sum, std::int64_t i) { return ptx::add(sum, term(i)); });
}

}  // namespace samebits::numerics::torch_2_11
