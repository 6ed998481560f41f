// The launch of dense_kernel for conversions whose layout it supports.
#pragma once

#include <algorithm>
#include <optional>

#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/common/launch_kernel.hpp"
#include "backends/dispatch/backend.hpp"

namespace samebits::cuda {

/// The call as dense rows for dense_kernel, or nothing if strides or alignment do not allow dense
/// rows. A matrix without gaps becomes one row.
///
/// @param pack elements of a vector that dense_kernel loads at once
/// @param index_multiple for stochastic rounding: divisor of every row's first random index
inline std::optional<dense_rows> dense_layout(const backends::convert_call& call, int pack,
                                              int index_multiple) {
  const auto& in = call.in;
  const auto& out = call.out;
  if (!has_dense_rows(in) || !has_dense_rows(out)) return std::nullopt;
  const bool stochastic = call.rule.rounding == rounding::stochastic;
  dense_rows d{cells_of(in),
               cells_of(out),
               static_cast<std::uint64_t>(in.rows),
               static_cast<std::uint64_t>(in.cols),
               call.random.offset,
               call.pitch};
  if (in.row_stride == in.cols && out.row_stride == out.cols &&
      (!stochastic || call.pitch == d.cols)) {
    d.cols *= d.rows;
    d.rows = 1;
  }
  // Whether every row starts at a multiple of the bytes of an access.
  const auto is_aligned_to_vectors = [&](const cells& c, format_id format) {
    const auto bytes = static_cast<std::uint64_t>(std::min(pack * storage_bytes(format), 16));
    return is_aligned(c.data, bytes) && (d.rows == 1 || c.row_bytes % bytes == 0);
  };
  if (!is_aligned_to_vectors(d.in, in.format) || !is_aligned_to_vectors(d.out, out.format)) {
    return std::nullopt;
  }
  if (stochastic) {
    const auto multiple = static_cast<std::uint64_t>(index_multiple);
    if (d.index % multiple != 0 || (d.rows > 1 && d.pitch % multiple != 0)) return std::nullopt;
  }
  return d;
}

/// Enqueues dense_kernel; false, without a launch, for strides or alignment that it does not support.
template <class Op>
bool launch_dense(const char* what, const Op& op, const backends::convert_call& call,
                  void* stream) {
  const std::optional<dense_rows> d = dense_layout(call, Op::pack, Op::index_multiple);
  if (!d) return false;
  launch_kernel(what, dense_kernel<Op>, row_grid(d->rows, d->cols, Op::pack, Op::packs),
                block_threads, 0, static_cast<cudaStream_t>(stream), op, *d);
  return true;
}

}  // namespace samebits::cuda
