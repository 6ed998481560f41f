// The elementwise kernel of functions of arrays, and its launch for a call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// A matrix in device memory; strides in bytes.
struct function_operand {
  std::byte* data;
  std::int64_t row_stride;
  std::int64_t col_stride;
  format_id format;
  int bytes;     ///< of a code
  bool vectors;  ///< rows are contiguous and aligned to a thread's elements
};

/// What the kernels of a call need to find their elements.
struct function_task {
  function_operand in, grad, out;  ///< grad has data only if the gradient is wanted
  std::uint64_t rows, cols;
  std::uint64_t groups_in_row;  ///< ceil(cols / elements of a thread)
  bool vectors;                 ///< of all operands
};

/// Codes of `Count` elements of one row.
template <int Bytes, int Count>
struct function_codes {
  std::uint32_t code[Count] = {};

  /// Loads `count` elements from `p`, `step` bytes apart; `vector`: all of them as packed words.
  __device__ __forceinline__ void load(const std::byte* p, std::int64_t step, int count,
                                       bool vector) {
    if constexpr (Count > 1) {
      if (vector) {
        const auto pack = packed<8 * Bytes, Count>::load(p);
#pragma unroll
        for (int i = 0; i < Count; ++i) code[i] = pack.code(i);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < count) code[i] = static_cast<std::uint32_t>(load_code(p + i * step, Bytes));
    }
  }
  __device__ __forceinline__ void store(std::byte* p, std::int64_t step, int count,
                                        bool vector) const {
    if constexpr (Count > 1) {
      if (vector) {
        packed<8 * Bytes, Count> pack{};
#pragma unroll
        for (int i = 0; i < Count; ++i) pack.set(i, code[i]);
        pack.store(p);
        return;
      }
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < count) store_code(p + i * step, Bytes, code[i]);
    }
  }
};

/// Computes out = f(in), or grad * f'(in), for every element. One thread per `Op::count` elements
/// of a row, in a grid-stride loop.
///
/// Op has bytes (of a code), count, gradient, and apply(codes of in, codes of grad): the codes of
/// out. Each element is loaded before any element of its thread is stored, so out may be in or
/// grad.
template <class Op>
__global__ void __launch_bounds__(block_threads)
    function_kernel(const Op op, const function_task t) {
  using codes = function_codes<Op::bytes, Op::count>;
  const std::uint64_t groups = t.rows * t.groups_in_row;
  const std::uint64_t step = std::uint64_t{gridDim.x} * block_threads;
  for (std::uint64_t g = std::uint64_t{blockIdx.x} * block_threads + threadIdx.x; g < groups;
       g += step) {
    const std::uint64_t row = t.rows == 1 ? 0 : g / t.groups_in_row;
    const std::uint64_t col = (g - row * t.groups_in_row) * Op::count;
    const std::uint64_t left = t.cols - col;
    const int count = static_cast<int>(left < Op::count ? left : Op::count);
    const bool vector = t.vectors && count == Op::count;
    const auto at = [&](const function_operand& v) {
      return v.data + static_cast<std::int64_t>(row) * v.row_stride +
             static_cast<std::int64_t>(col) * v.col_stride;
    };
    codes x, grad;
    x.load(at(t.in), t.in.col_stride, count, vector);
    if constexpr (Op::gradient) grad.load(at(t.grad), t.grad.col_stride, count, vector);
#pragma unroll
    for (int i = 0; i < Op::count; ++i) x.code[i] = op.apply(x.code[i], grad.code[i]);
    x.store(at(t.out), t.out.col_stride, count, vector);
  }
}

/// The task of a call whose threads compute `count` elements each. A matrix without gaps becomes
/// one row, unless the call rounds stochastically: random bits have a pitch of their own.
inline function_task function_task_of(const backends::evaluate_call& call, int count) {
  const bool gradient = call.grad.data != nullptr;
  const auto is_flat = [](const const_matrix_view& v) {
    return (v.cols == 1 || v.col_stride == 1) && (v.rows == 1 || v.row_stride == v.cols);
  };
  const bool flat = call.rule.rounding != rounding::stochastic && is_flat(call.in) &&
                    is_flat(call.out) && (!gradient || is_flat(call.grad));
  const auto operand = [&](const const_matrix_view& v) {
    const int bytes = storage_bytes(v.format);
    const std::int64_t row_stride = flat ? 0 : v.row_stride * bytes;
    const std::int64_t col_stride = v.cols == 1 ? bytes : v.col_stride * bytes;
    const int group = bytes * count;
    auto* const data = static_cast<std::byte*>(const_cast<void*>(v.data));  // stores only to out
    return function_operand{data,
                            row_stride,
                            col_stride,
                            v.format,
                            bytes,
                            col_stride == bytes && row_stride % group == 0 &&
                                reinterpret_cast<std::uintptr_t>(v.data) % group == 0};
  };
  const auto rows = static_cast<std::uint64_t>(flat ? 1 : call.out.rows);
  const auto cols =
      static_cast<std::uint64_t>(flat ? call.out.rows * call.out.cols : call.out.cols);
  const auto elements = static_cast<std::uint64_t>(count);
  function_task t{
      operand(call.in), {}, operand(call.out), rows, cols, (cols + elements - 1) / elements, false};
  if (gradient) t.grad = operand(call.grad);
  t.vectors = t.in.vectors && t.out.vectors && (!gradient || t.grad.vectors);
  return t;
}

/// Blocks for one thread per group of elements, in a grid-stride loop beyond 2^20 blocks.
inline unsigned function_blocks(const function_task& t) {
  const std::uint64_t blocks = (t.rows * t.groups_in_row + block_threads - 1) / block_threads;
  return static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20));
}

/// Enqueues a call, applying `op` to every element.
template <class Op>
void launch_function(const char* what, const Op& op, const backends::evaluate_call& call,
                     void* stream) {
  const function_task t = function_task_of(call, Op::count);
  launch_kernel(what, function_kernel<Op>, function_blocks(t), block_threads, 0,
                static_cast<cudaStream_t>(stream), op, t);
}

}  // namespace samebits::cuda
