// Row operands: the matrices of a call in device memory, and the codes that a thread loads from a
// row and stores to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/dispatch/calls/row_functions.hpp"
#include "samebits/view.hpp"

namespace samebits::cuda {

using backends::row_function;

/// A matrix in device memory. Strides in bytes.
struct row_operand {
  std::byte* data = nullptr;  ///< null: the call lacks it
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 0;
  bool contiguous = false;  ///< the elements of a row
  int alignment = 1;        ///< of every row, or of every element: a power of two up to 16
  int bytes = 0;            ///< of an element

  /// Whether rows can be read in vectors of this size.
  [[nodiscard]] SAMEBITS_HD bool has_vectors(int vector_bytes) const {
    return contiguous && alignment >= (vector_bytes < 16 ? vector_bytes : 16);
  }
};

/// The operand of a view.
inline row_operand operand_of(const const_matrix_view& v) {
  const int bytes = storage_bytes(v.format);
  const std::int64_t col_stride = v.cols == 1 ? bytes : v.col_stride * bytes;
  const std::int64_t row_stride = v.rows == 1 ? 0 : v.row_stride * bytes;
  const bool contiguous = col_stride == bytes;
  std::uint64_t addresses =
      reinterpret_cast<std::uintptr_t>(v.data) | static_cast<std::uint64_t>(row_stride) | 16u;
  if (!contiguous) addresses |= static_cast<std::uint64_t>(col_stride);
  auto* const data = static_cast<std::byte*>(const_cast<void*>(v.data));  // stores to results alone
  return {data, row_stride, col_stride, contiguous, static_cast<int>(addresses & (0 - addresses)),
          bytes};
}

/// What the parts of cross entropy read and write beside the rows.
struct loss_launch {
  numerics::torch_2_11::cross_entropy_rule rule;
  const std::int64_t* targets = nullptr;
  std::int64_t ignore_index = 0;
  row_operand loss;        ///< of all rows, or of each: [1, rows]; written
  row_operand grad;        ///< of `loss`
  row_operand known_grad;  ///< kernels return if `grad` is equal to it; no data: never
  /// The gradient of every target's log-probability, binary32; null without a reduction.
  const std::uint32_t* factor = nullptr;
  std::uint32_t* picked = nullptr;  ///< [rows], binary32, written; null: not wanted
};

/// The parameters of the kernels.
struct row_launch {
  row_operand in, grad, weight, bias, mean, rstd, sum, out;  ///< as in backends::row_call
  row_operand mask;                                          ///< as in backends::row_call
  numerics::torch_2_11::score_rule scores;
  std::int64_t rows;
  format_id format;  ///< of the operands; orders.format is that of the sums
  backends::row_orders orders;
  std::uint32_t epsilon;
  loss_launch loss = {};
  numerics::torch_2_11::row_order order = {};  ///< of all rows, if has_order
  bool has_order = false;
  std::int64_t copied = 0;  ///< elements at the beginning of a row that rows_in_memory copies
};

/// Codes of E elements: packed, or one code in a word.
template <int Bytes, int E>
using row_codes =
    std::conditional_t<Bytes != 0 && Bytes * E % 4 == 0, packed<8 * Bytes, E>, packed<32, E>>;

/// One row of an operand. Bytes: of an element; 0 if they are known at run time only.
template <int Bytes>
struct operand_row {
  std::byte* data;
  std::int64_t step;  ///< bytes between elements
  int bytes;
  bool contiguous;
  bool aligned;  ///< elements to their size

  __device__ __forceinline__ operand_row(const row_operand& v, std::int64_t row)
      : data(v.data + row * v.row_stride),
        step(v.col_stride),
        bytes(Bytes != 0 ? Bytes : v.bytes),
        contiguous(v.contiguous),
        aligned(Bytes == 1 || v.alignment >= bytes) {}
  /// Dense elements at `p`, aligned to their size.
  __device__ __forceinline__ explicit operand_row(std::byte* p)
      : data(p), step(Bytes), bytes(Bytes), contiguous(true), aligned(true) {}

  [[nodiscard]] __device__ __forceinline__ std::uint32_t load(std::int64_t i) const {
    const std::byte* const p = data + i * step;
    return aligned ? load_aligned(p, bytes) : static_cast<std::uint32_t>(load_code(p, bytes));
  }
  __device__ __forceinline__ void store(std::int64_t i, std::uint32_t code) const {
    std::byte* const p = data + i * step;
    if (!aligned) return store_code(p, bytes, code);
    store_aligned(p, bytes, code);
  }

  /// Whether vectors of E elements lie at element i and at multiples of E behind it.
  template <int E>
  [[nodiscard]] __device__ __forceinline__ bool has_vectors_at(std::int64_t i) const {
    if constexpr (Bytes == 0) {
      return false;
    } else {
      constexpr int vector = E * Bytes < 16 ? E * Bytes : 16;
      return contiguous && reinterpret_cast<std::uintptr_t>(data + i * Bytes) % vector == 0;
    }
  }
  /// E elements from element i on. More than one element require has_vectors_at().
  template <int E>
  [[nodiscard]] __device__ __forceinline__ row_codes<Bytes, E> load(std::int64_t i) const {
    if constexpr (E == 1) {
      return {load(i)};
    } else {
      return row_codes<Bytes, E>::load(data + i * Bytes);
    }
  }
  /// The same of elements that are read once: they leave the cache to weights and biases.
  template <int E>
  [[nodiscard]] __device__ __forceinline__ row_codes<Bytes, E> load_once(std::int64_t i) const {
    if constexpr (E == 1) {
      return {load(i)};
    } else {
      return row_codes<Bytes, E>::load_once(data + i * Bytes);
    }
  }
  template <int E>
  __device__ __forceinline__ void store(std::int64_t i, const row_codes<Bytes, E>& x) const {
    if constexpr (E == 1) {
      store(i, x.w[0]);
    } else {
      x.store(data + i * Bytes);
    }
  }
};

/// Code i of gradients of losses, in the rows' format or in binary32.
template <int Bytes>
__device__ __forceinline__ std::uint32_t loss_code(const loss_launch& d, const row_operand& of,
                                                   std::int64_t i) {
  if (d.rule.loss_format == format_id::fp32) return operand_row<4>(of, 0).load(i);
  return operand_row<Bytes>(of, 0).load(i);
}
/// The code of the gradient of loss i.
template <int Bytes>
__device__ __forceinline__ std::uint32_t code_of_gradient(const loss_launch& d, std::int64_t i) {
  return loss_code<Bytes>(d, d.grad, i);
}
/// Whether the gradient of the logits is there already.
template <int Bytes>
__device__ __forceinline__ bool is_known(const loss_launch& d) {
  return d.known_grad.data != nullptr &&
         loss_code<Bytes>(d, d.known_grad, 0) == code_of_gradient<Bytes>(d, 0);
}

}  // namespace samebits::cuda
