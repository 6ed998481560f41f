// Sums, means and norms over axes of a tensor, and norms of a list's tensors, with the bits that
// PyTorch returns on a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/axis_reduction.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/function.hpp"
#include "samebits/tensor_list.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// A read-only tensor of any number of axes.
struct const_tensor_view {
  const void* data = nullptr;
  format_id format = format_id::fp32;
  std::span<const std::int64_t> shape = {};
  std::span<const std::int64_t> strides = {};  ///< in elements, one per axis, >= 0
  memory_space space = memory_space::host;
};

/// Options of reduce_axes().
struct axis_reduction_options {
  axis_reduction of = axis_reduction::sum;
  /// Whose bits the call returns (contract §14): function_rule::torch_2_11 is the only rule.
  function_rule rule = function_rule::exact;
  /// Elements from a 16-byte boundary of the GPU's memory to the tensor's first element, >= 0: the
  /// tensor's storage_offset().
  std::int64_t offset = 0;
  /// Streaming multiprocessors of the GPU, >= 1: an H100 and an H200 have 132. PyTorch splits large
  /// sums into as many blocks as fill the GPU.
  int multiprocessors = 132;
};

/// Computes torch.sum, torch.mean or torch.linalg.vector_norm of a tensor over some of its axes.
///
/// The order of the additions follows from the shape, the strides, the format and the GPU. Of no
/// elements the sum and the norm are +0, the mean is NaN. Every NaN result is the canonical NaN.
///
/// @param in  fp32, fp16 or bf16, at most max_reduction_axes axes, host memory
/// @param axes  the axes to reduce, each once; empty: all
/// @param out  [rows, cols] in the format of `in`, host memory: the results in C order of the other
///   axes, row by row. Must not overlap `in`.
/// @param options  what to compute, by which rule
/// @param where  backend and threads
/// @throws invalid_argument, before anything is written, if an enumerator is none of its type, an
///   option is out of range, an axis is out of range or given twice, a size or stride is negative,
///   the strides are not as many as the axes, the number of results differs from that of `out`, the
///   formats or memories differ, data of non-empty views is null, elements of `out` share memory,
///   `out` overlaps `in`, or the backend's name is unknown
/// @throws unsupported for another rule or format, for `out` in device memory, for tensors that
///   span 2^31 bytes or more, which PyTorch cuts into several sums, or if this machine lacks the
///   backend
/// @note Thread-safe. The result does not depend on the executor.
///
///   std::vector<float> x(64 * 1000), sums(1000);  // sums = x.sum(0)
///   const std::int64_t shape[] = {64, 1000}, strides[] = {1000, 1};
///   const int over[] = {0};
///   samebits::reduce_axes({x.data(), samebits::format_id::fp32, shape, strides}, over,
///                         samebits::view_of(sums), {.rule = samebits::function_rule::torch_2_11});
void reduce_axes(const const_tensor_view& in, std::span<const int> axes, const matrix_view& out,
                 const axis_reduction_options& options, const executor& where = {});

/// Computes torch._foreach_norm of a list: the norm of each tensor.
///
/// @param tensors  in one format, fp32, fp16 or bf16, in host memory. PyTorch's tensors begin at a
///   multiple of 4 elements; elements count in C order.
/// @param norms  [1, tensors] in the format of the tensors; must not overlap them
/// @param rule  function_rule::torch_2_11 is the only rule (contract §14)
/// @param where  backend and threads
/// @throws invalid_argument, before anything is written, if a shape or format differs from the
///   above, or as operations on lists do
/// @throws unsupported for another rule or format, for device memory, or if this machine lacks the
///   backend
/// @note Thread-safe. The result does not depend on the executor.
void foreach_norm(const tensor_list& tensors, const matrix_view& norms, function_rule rule,
                  const executor& where = {});

/// Clips gradients as torch.nn.utils.clip_grad_norm_(..., foreach=True) does: the norm of the list
/// of norms, rounded to the gradients' format; then every gradient times min(max_norm / (norm +
/// 1e-6), 1).
///
/// @param gradients  as in foreach_norm(); written
/// @param max_norm  the largest norm, >= 0
/// @return the norm before; 0 without gradients
/// @throws as foreach_norm() does.
float clip_grad_norm(const tensor_list& gradients, double max_norm, function_rule rule,
                     const executor& where = {});

}  // namespace samebits
