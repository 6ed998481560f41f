// The elementwise kernel of functions of arrays, and its launch for a call.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

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
};

/// Launch parameters of function_kernel. `grad` is used by gradients only.
struct function_task {
  function_operand in, grad, out;
  std::uint64_t rows, cols;
  std::uint64_t groups_in_row;  ///< ceil(cols / elements of a thread)
  bool vectors;                 ///< all rows are contiguous and aligned to a thread's elements
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

/// Launch parameters of a call whose threads compute `count` elements each. A matrix without gaps
/// becomes one row.
inline function_task function_task_of(const backends::evaluate_call& call, int count) {
  const auto bytes = static_cast<std::int64_t>(storage_bytes(call.out.format));
  const bool gradient = call.grad.data != nullptr;
  const const_matrix_view views[] = {call.in, gradient ? call.grad : call.in, call.out};
  bool dense = true, flat = true;
  for (const const_matrix_view& v : views) {
    dense = dense && (v.cols == 1 || v.col_stride == 1);
    flat = flat && dense && (v.rows == 1 || v.row_stride == v.cols);
  }
  bool aligned = true;
  const auto operand = [&](const const_matrix_view& v) {
    const std::int64_t row_stride = flat ? 0 : v.row_stride * bytes;
    aligned = aligned && reinterpret_cast<std::uintptr_t>(v.data) % (bytes * count) == 0 &&
              row_stride % (bytes * count) == 0;
    auto* const data = static_cast<std::byte*>(const_cast<void*>(v.data));  // stores only to out
    return function_operand{data, row_stride, dense ? bytes : v.col_stride * bytes};
  };
  const auto rows = static_cast<std::uint64_t>(flat ? 1 : call.out.rows);
  const auto cols =
      static_cast<std::uint64_t>(flat ? call.out.rows * call.out.cols : call.out.cols);
  const auto elements = static_cast<std::uint64_t>(count);
  function_task t{operand(views[0]),
                  operand(views[1]),
                  operand(views[2]),
                  rows,
                  cols,
                  (cols + elements - 1) / elements,
                  false};
  t.vectors = dense && aligned;
  return t;
}

/// Enqueues a call, applying `op` to every element.
template <class Op>
void launch_function(const char* what, const Op& op, const backends::evaluate_call& call,
                     void* stream) {
  const function_task t = function_task_of(call, Op::count);
  const std::uint64_t groups = t.rows * t.groups_in_row;
  const std::uint64_t blocks = (groups + block_threads - 1) / block_threads;
  launch_kernel(what, function_kernel<Op>,
                static_cast<unsigned>(std::min<std::uint64_t>(blocks, 1u << 20)), block_threads, 0,
                static_cast<cudaStream_t>(stream), op, t);
}

}  // namespace samebits::cuda
