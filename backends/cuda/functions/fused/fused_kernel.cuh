// Fused elements: the kernel that computes the elements of several operands together, and its launch.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/cuda/functions/rows/row_formats.cuh"
#include "backends/cuda/functions/rows/row_operands.cuh"
#include "backends/dispatch/calls/fused.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/hardware/torch_operators/fused_elements.hpp"

namespace samebits::cuda {

using numerics::torch_2_11::fused;
using numerics::torch_2_11::fused_count;
using numerics::torch_2_11::fused_plan;

/// An operand and its rows, as in backends::fused_operand.
struct fused_rows {
  row_operand operand;
  const std::int64_t* indices = nullptr;
  std::int64_t rows = 0;
  std::int64_t each = 1;
  bool repeats = false;  ///< not row r for row r of the results
  bool same = false;     ///< one element for all columns

  /// The row of the operand; -1 if an index is none of a row.
  [[nodiscard]] __device__ __forceinline__ std::int64_t row_of(std::int64_t row) const {
    if (indices != nullptr) {
      const std::int64_t index = indices[row];
      return index >= 0 && index < rows ? index : -1;
    }
    if (!repeats) return row;
    if (rows == 1) return 0;
    if (row < std::int64_t{1} << 31 && each < std::int64_t{1} << 31) {  // divisions of 32 bits
      const auto group = static_cast<std::uint32_t>(row) / static_cast<std::uint32_t>(each);
      return rows > group ? group : group % static_cast<std::uint32_t>(rows);
    }
    return row / each % rows;
  }
};

/// The parameters of the kernel.
struct fused_launch {
  fused_plan plan;
  fused_rows in[backends::max_fused_operands];
  row_operand out[backends::max_fused_results];
  std::int64_t rows, cols;
  random_stream random;
  std::uint64_t pitch;
  bool vectors;  ///< of all operands and results
};

/// A composition that the plan names, and one that is a constant of the kernel.
struct any_fused {
  static __device__ __forceinline__ const fused_plan& plan_of(const fused_plan& p) { return p; }
};
template <fused Of, function F>
struct one_fused {
  static __device__ __forceinline__ fused_plan plan_of(fused_plan p) {
    p.of = Of;
    p.f.rule = function_rule::torch_2_11;
    p.f.of = F;
    return p;
  }
};

/// Calls launch<F>() with a composition's function; silu if it has none.
template <fused Of, class Launch>
void with_fused_function(function f, const Launch& launch) {
  if constexpr (Of == fused::gated || Of == fused::gated_gradient || Of == fused::biased ||
                Of == fused::biased_gradient) {
    if (f == function::gelu) return launch.template operator()<function::gelu>();
    if (f == function::gelu_tanh) return launch.template operator()<function::gelu_tanh>();
  }
  launch.template operator()<function::silu>();
}

/// The random bits of E elements from `index` on, whose block has the element as its number `Field`,
/// or `field` if Field is -1.
template <int Field, int E>
__device__ __forceinline__ void random_bits(const random_stream& random, std::uint64_t index,
                                            int field, std::uint32_t (&bits)[E]) {
  constexpr int fields = 4;  // of 32 bits in a block
  const auto keys = numerics::philox_keys_of(random.seed);
  numerics::philox_block block{};
#pragma unroll
  for (int i = 0; i < E; ++i) {
    const int at = ((Field < 0 ? field : Field) + i) % fields;
    if (i == 0 || at == 0) {
      block = numerics::philox4x32_10(keys, random.stream,
                                      (index + static_cast<std::uint64_t>(i)) / fields);
    }
    const std::uint32_t low = at == 0 ? block.word[0] : block.word[1];
    const std::uint32_t high = at == 2 ? block.word[2] : block.word[3];
    bits[i] = (at < 2 ? low : high) >> (32 - numerics::torch_2_11::dropout_bits);
  }
}

/// Loads codes of `count` elements; `vector`: of all E as one vector; `repeats`: others read them, too.
template <int Bytes, int E>
__device__ __forceinline__ row_codes<Bytes, E> load_codes(const operand_row<Bytes>& row,
                                                          std::int64_t col, int count, bool vector,
                                                          bool repeats) {
  if constexpr (E > 1) {
    if (vector && repeats) return row.template load<E>(col);
    if (vector) return row.template load_once<E>(col);
  }
  row_codes<Bytes, E> x{};
#pragma unroll
  for (int i = 0; i < E; ++i) {
    if (i < count) x.set(i, row.load(col + i));
  }
  return x;
}
template <int Bytes, int E>
__device__ __forceinline__ void store_codes(const operand_row<Bytes>& row, std::int64_t col,
                                            int count, bool vector, const row_codes<Bytes, E>& y) {
  if constexpr (E > 1) {
    if (vector) return row.template store<E>(col, y);
  }
#pragma unroll
  for (int i = 0; i < E; ++i) {
    if (i < count) row.store(col + i, y.code(i));
  }
}

inline constexpr int fused_threads = 256;

/// The columns that a thread computes together.
struct fused_columns {
  std::int64_t col;
  int count;    ///< 1 to E; 0 beyond the matrix
  bool vector;  ///< loaded and stored as vectors
};

template <int E>
__device__ __forceinline__ fused_columns columns_of(const fused_launch& d, std::int64_t row,
                                                    std::int64_t col) {
  const std::int64_t left = row < d.rows ? d.cols - col : 0;
  const int count = left >= E ? E : left > 0 ? static_cast<int>(left) : 0;
  return {col, count, d.vectors && count == E};
}

/// Loads E columns of a row, and computes their results in the format's numbers, before rounding.
template <class Numbers, int E>
__device__ __forceinline__ void evaluate_columns(
    const fused_launch& d, const fused_plan& plan, const Numbers& numbers, std::int64_t row,
    const fused_columns& at, typename Numbers::word (&y)[backends::max_fused_results][E]) {
  using word = typename Numbers::word;
  constexpr int bytes = Numbers::bytes;
  const int operands = operands_of(plan.of);
  row_codes<bytes, E> x[backends::max_fused_operands] = {};
#pragma unroll
  for (int k = 0; k < backends::max_fused_operands; ++k) {
    if (k >= operands) continue;
    const std::int64_t of = d.in[k].row_of(row);
    if (of >= 0 && !d.in[k].same) {
      x[k] = load_codes<bytes, E>(operand_row<bytes>(d.in[k].operand, of), at.col, at.count,
                                  at.vector, d.in[k].repeats);
      continue;
    }
    const std::uint32_t code = of >= 0 ? operand_row<bytes>(d.in[k].operand, of).load(0)
                                       : numbers.code(word(numerics::binary32::nan));
#pragma unroll
    for (int i = 0; i < E; ++i) x[k].set(i, code);
  }
  std::uint32_t random[E] = {};
  if (plan.of == fused::dropout) {
    const std::uint64_t index = d.random.offset + static_cast<std::uint64_t>(row) * d.pitch +
                                static_cast<std::uint64_t>(at.col);
    const int field = static_cast<int>(index % 4);
    if (field == 0) {
      random_bits<0>(d.random, index, 0, random);
    } else {
      random_bits<-1>(d.random, index, field, random);
    }
  }
#pragma unroll
  for (int i = 0; i < E; ++i) {
    word of[backends::max_fused_operands] = {0u, 0u, 0u, 0u};
    word to[backends::max_fused_results] = {0u, 0u};
#pragma unroll
    for (int k = 0; k < backends::max_fused_operands; ++k) {
      if (k < operands) of[k] = numbers.value(x[k].code(i));
    }
    numerics::torch_2_11::evaluate_fused(plan, numbers, of, word(random[i]), to);
    y[0][i] = to[0];
    y[1][i] = to[1];
  }
}

/// Computes the results of a call. One thread per E elements of a row; blockDim.x threads a row,
/// blockDim.y rows a block at a time. Elements are loaded before any of them is stored, so a result
/// may be an operand. Cost: one read of each operand, one write of each result.
template <class Numbers, class Of, int E>
__global__ void __launch_bounds__(fused_threads) fused_kernel(const fused_launch d) {
  if constexpr (Numbers::compiled) {
    constexpr int bytes = Numbers::bytes;
    const Numbers numbers(d.plan.f.format);
    const fused_plan plan = Of::plan_of(d.plan);
    const int results = results_of(plan.of);
    const std::int64_t row_step = std::int64_t{gridDim.y} * blockDim.y;
    const std::int64_t col_step = std::int64_t{gridDim.x} * blockDim.x * E;
    const std::int64_t first_col = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * E;
    for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < d.rows;
         row += row_step) {
      for (std::int64_t col = first_col; col < d.cols; col += col_step) {
        const fused_columns at = columns_of<E>(d, row, col);
        typename Numbers::word y[backends::max_fused_results][E];
        evaluate_columns<Numbers, E>(d, plan, numbers, row, at, y);
#pragma unroll
        for (int k = 0; k < backends::max_fused_results; ++k) {
          if (k >= results) continue;
          store_codes<bytes, E>(operand_row<bytes>(d.out[k], row), col, at.count, at.vector,
                                numbers.codes(y[k]));
        }
      }
    }
  }
}

/// The parameters of a call. Matrices without gaps become one row, if no operand repeats rows and
/// `joins`.
inline fused_launch fused_launch_of(const backends::fused_call& call, int vector_bytes,
                                    bool joins = true) {
  const matrix_view& shape = call.out[0];
  const auto has_own_rows = [&](const backends::fused_operand& v) {
    return v.indices == nullptr && v.each == 1 && v.view.rows == shape.rows;
  };
  bool flat = joins && (call.plan.of != fused::dropout ||
                        call.pitch == static_cast<std::uint64_t>(shape.cols));
  for (int k = 0; k < call.operands(); ++k) {
    flat = flat && has_own_rows(call.in[k]) && is_flat(call.in[k].view);
  }
  for (int k = 0; k < call.results(); ++k) flat = flat && is_flat(call.out[k]);
  const auto operand = [&](const_matrix_view v) {
    if (flat) v = {v.data, v.format, 1, v.rows * v.cols, 0, 1, v.space};
    return operand_of(v);
  };
  fused_launch d = {};
  d.plan = call.plan;
  d.rows = flat ? 1 : shape.rows;
  d.cols = flat ? shape.rows * shape.cols : shape.cols;
  d.random = call.random;
  d.pitch = call.pitch;
  d.vectors = true;
  for (int k = 0; k < call.operands(); ++k) {
    const backends::fused_operand& v = call.in[k];
    const bool same = v.view.cols > 1 && v.view.col_stride == 0;
    d.in[k] = {operand(v.view), v.indices, v.view.rows, v.each, !has_own_rows(v), same};
    d.vectors = d.vectors && (same || d.in[k].operand.has_vectors(vector_bytes));
  }
  for (int k = 0; k < call.results() && call.out[k].data != nullptr; ++k) {
    d.out[k] = operand(call.out[k]);
    d.vectors = d.vectors && d.out[k].has_vectors(vector_bytes);
  }
  return d;
}

/// Threads and blocks for rows whose threads compute E columns each; at least `least` threads a row.
struct fused_grid {
  dim3 blocks, threads;

  fused_grid(const fused_launch& d, int elements, unsigned least = 1) {
    const std::int64_t groups = (d.cols + elements - 1) / elements;
    const auto width = std::max(
        least, static_cast<unsigned>(std::bit_ceil(
                   static_cast<std::uint64_t>(std::min<std::int64_t>(groups, fused_threads)))));
    const unsigned height = fused_threads / width;
    const auto count = [](std::int64_t all, unsigned each, std::int64_t most) {
      return static_cast<unsigned>(std::min<std::int64_t>((all + each - 1) / each, most));
    };
    threads = dim3(width, height);
    blocks = dim3(count(groups, width, 1 << 20), count(d.rows, height, 65535));
  }
};

/// Enqueues a call on kernels of E elements a thread.
template <class Numbers, class Of, int E>
void launch_fused(const backends::fused_call& call, cudaStream_t stream) {
  const fused_launch d = fused_launch_of(call, E * Numbers::bytes);
  const fused_grid grid(d, E);
  launch_kernel("fused operators", fused_kernel<Numbers, Of, E>, grid.blocks, grid.threads, 0,
                stream, d);
}

}  // namespace samebits::cuda
