// The elementwise kernel of functions of arrays, and its launch for a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/dispatch/calls/evaluate.hpp"
#include "samebits/core/format.hpp"

namespace samebits::cuda {

/// A matrix in device memory.
struct function_operand : cells {
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

/// Codes of `Count` elements of one row. Bytes: of a code; 0 if they are known at run time only.
template <int Bytes, int Count>
struct function_codes {
  std::uint32_t code[Count] = {};

  /// Loads `count` elements of v from (row, col) on; `vector`: all of them as packed words.
  __device__ __forceinline__ void load(const function_operand& v, std::uint64_t row,
                                       std::uint64_t col, int count, bool vector) {
    const std::byte* const p = v.at(row, col);
    if constexpr (Count > 1) {
      if (vector) return Bytes != 0 || v.bytes == 4 ? load_packed<wide>(p) : load_packed<2>(p);
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < count) {
        code[i] = static_cast<std::uint32_t>(load_code(p + i * v.col_bytes, width_of(v)));
      }
    }
  }
  __device__ __forceinline__ void store(const function_operand& v, std::uint64_t row,
                                        std::uint64_t col, int count, bool vector) const {
    std::byte* const p = v.at(row, col);
    if constexpr (Count > 1) {
      if (vector && (Bytes != 0 || v.bytes == 4)) return store_packed<wide>(p);
      if (vector) return v.bytes == 2 ? store_packed<2>(p) : store_packed<1>(p);
    }
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (i < count) store_code(p + i * v.col_bytes, width_of(v), code[i]);
    }
  }

 private:
  /// Operands of widths known at run time have 2 or 4 bytes, results also one.
  static constexpr int wide = Bytes != 0 ? Bytes : 4;

  __device__ __forceinline__ static int width_of(const function_operand& v) {
    return Bytes != 0 ? Bytes : v.bytes;
  }
  template <int Width>
  __device__ __forceinline__ void load_packed(const std::byte* p) {
    const auto pack = packed<8 * Width, Count>::load(p);
#pragma unroll
    for (int i = 0; i < Count; ++i) code[i] = pack.code(i);
  }
  template <int Width>
  __device__ __forceinline__ void store_packed(std::byte* p) const {
    packed<8 * Width, Count> pack{};
#pragma unroll
    for (int i = 0; i < Count; ++i) pack.set(i, code[i]);
    pack.store(p);
  }
};

/// Computes out = f(in), or grad * f'(in), for every element. One thread per `Op::count` elements
/// of a row, in a grid-stride loop.
///
/// Op has bytes (of a code, or 0), count, has_gradient(task), and apply(task, code of in, code of grad,
/// row, col): the code of out. Each element is loaded before any element of its thread is stored, so
/// out may be in or grad.
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
    codes x, grad;
    x.load(t.in, row, col, count, vector);
    if (Op::has_gradient(t)) grad.load(t.grad, row, col, count, vector);
#pragma unroll
    for (int i = 0; i < Op::count; ++i) {
      x.code[i] = op.apply(t, x.code[i], grad.code[i], row, col + i);
    }
    x.store(t.out, row, col, count, vector);
  }
}

/// The task of a call whose threads compute `count` elements each. A matrix without gaps becomes
/// one row, unless the call rounds stochastically: random bits have a pitch of their own.
inline function_task function_task_of(const backends::evaluate_call& call, int count) {
  const bool gradient = call.grad.data != nullptr;
  const bool flat = call.rule.rounding != rounding::stochastic && is_flat(call.in) &&
                    is_flat(call.out) && (!gradient || is_flat(call.grad));
  const auto operand = [&](const const_matrix_view& v) {
    const int bytes = storage_bytes(v.format);
    const auto group = static_cast<std::uint64_t>(bytes * count);
    function_operand o{cells_of(v), v.format, bytes, false};
    if (flat) o.row_bytes = 0;
    if (v.cols == 1) o.col_bytes = static_cast<std::uint64_t>(bytes);
    o.vectors = o.col_bytes == static_cast<std::uint64_t>(bytes) && o.row_bytes % group == 0 &&
                is_aligned(v.data, group);
    return o;
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
  return grid_for(t.rows * t.groups_in_row, block_threads);
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
