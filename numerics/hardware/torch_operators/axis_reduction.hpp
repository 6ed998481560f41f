// Axis reduction: one result of PyTorch 2.11's reduce_kernel, from the plan of axis_plan.hpp.
//
// Each thread has 4 sums, or as many as it loads at once. The sums of a thread, of the threads in x
// and in y, and of the blocks become one. Source: PyTorch's Reduce.cuh and SharedReduceOps.h; that a
// square is added by fma follows from the machine code.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/torch_operators/axis_plan.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::torch_2_11 {

inline constexpr int most_block_threads = 512;

/// A thread's place among those that share a result.
struct reduction_thread {
  int x;
  int y;
  std::int64_t block;
};

/// One thread's sum. `element(i)` is the binary32 value of element i of the result; `add(sum, x)`
/// adds it. `shift`: elements from a boundary of a vector to element 0, used if the plan has vectors.
template <class Element, class Add>
SAMEBITS_HD constexpr std::uint32_t thread_sum(const axis_plan& p, const reduction_thread& t,
                                               std::int64_t shift, const Element& element,
                                               const Add& add) {
  const int sharing = sharing_threads(p);
  const std::int64_t first =
      t.x + std::int64_t{t.y} * (p.across_x ? p.width : 1) + t.block * sharing;
  const std::int64_t step = p.blocks * sharing;
  std::uint32_t sums[8] = {};
  const int count = p.vector > 0 ? p.vector : 4;
  if (p.vector == 0) {
    int at = 0;
    for (std::int64_t i = first; i < p.inputs; i += step) {
      sums[at] = add(sums[at], element(i));
      at = (at + 1) % count;
    }
  } else {
    const int n = p.vector;
    const bool has_ends = t.y == 0 && t.block == 0;
    const std::int64_t head = shift > 0 ? n - shift : 0;
    if (shift > 0 && has_ends && t.x >= shift && t.x < n) {
      sums[0] = add(0, element(t.x - shift));
    }
    const std::int64_t body = p.inputs - head;
    for (std::int64_t i = first * n; i + n <= body; i += step * n) {
      for (int j = 0; j < n; ++j) sums[j] = add(sums[j], element(head + i + j));
    }
    const std::int64_t rest = body - body % n + t.x;
    if (has_ends && rest < body) sums[0] = add(sums[0], element(head + rest));
  }
  std::uint32_t sum = sums[0];
  for (int j = 1; j < count; ++j) sum = ptx::add(sum, sums[j]);
  return sum;
}

/// Folds the threads of a block, at sums[y * columns + x]: first in x, or first in y.
SAMEBITS_HD constexpr std::uint32_t fold_block(std::uint32_t* sums, int columns, int rows,
                                               bool x_first) {
  const auto plus = [](std::uint32_t a, std::uint32_t b) { return ptx::add(a, b); };
  if (x_first) {
    for (int y = 0; y < rows; ++y) sums[y] = fold_halves(sums + y * columns, columns, plus);
    return fold_halves(sums, rows, plus);
  }
  for (int step = rows / 2 * columns; step >= columns; step /= 2) {
    for (int t = 0; t < step; ++t) sums[t] = plus(sums[t], sums[t + step]);
  }
  return fold_halves(sums, columns, plus);
}

/// Whether squares are added, by fma. PyTorch computes the norm of one element as its magnitude.
SAMEBITS_HD constexpr bool adds_squares(const axis_plan& p, axis_reduction of) {
  return of == axis_reduction::norm && p.inputs > 1;
}

/// The sum of a result's elements, or of their squares.
template <class Element>
SAMEBITS_HD constexpr std::uint32_t axis_sum(const axis_plan& p, axis_reduction of,
                                             std::int64_t shift, const Element& element) {
  const bool squares = adds_squares(p, of);
  const auto add = [&](std::uint32_t sum, std::uint32_t x) {
    return squares ? ptx::fma(x, x, sum) : ptx::add(sum, x);
  };
  const int columns = p.across_x ? p.width : 1, rows = p.across_y ? p.height : 1;
  std::uint32_t sums[most_block_threads] = {}, of_blocks[most_block_threads] = {};
  for (std::int64_t block = 0; block < p.blocks; ++block) {
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        sums[y * columns + x] = thread_sum(p, {x, y, block}, shift, element, add);
      }
    }
    const std::uint32_t sum = fold_block(sums, columns, rows, true);
    if (p.blocks == 1) return sum;
    std::uint32_t& total = of_blocks[block % (rows * columns)];
    total = ptx::add(total, sum);
  }
  return fold_block(of_blocks, columns, rows, false);
}

/// The result of a sum, binary32 bits. With inputs = 0 the result of no elements, from a sum of +0.
SAMEBITS_HD constexpr std::uint32_t axis_result(const axis_plan& p, axis_reduction of,
                                                std::uint32_t sum) {
  if (of == axis_reduction::norm) {
    return adds_squares(p, of) ? ptx::sqrt(sum) : ptx::abs<std::uint32_t>(sum);
  }
  if (of == axis_reduction::sum) return sum;
  const auto count = [](std::int64_t n) {
    return ptx::from_int(static_cast<std::uint32_t>(n));  // below 2^31
  };
  return ptx::mul(sum, ptx::div(count(p.outputs), count(p.outputs * p.inputs)));
}

}  // namespace samebits::numerics::torch_2_11
