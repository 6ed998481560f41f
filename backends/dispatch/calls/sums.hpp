// Sums in the order of PyTorch's kernels: what a host backend computes of them, and the checked
// calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/dispatch/backend.hpp"
#include "numerics/hardware/torch_operators/axis_plan.hpp"
#include "numerics/hardware/torch_operators/norm_parameters.hpp"
#include "numerics/hardware/torch_operators/row_layer_norm.hpp"
#include "samebits/axis_reductions.hpp"

namespace samebits::backends {

/// Sums of many neighbours. Sums and statistics are binary32 bits; a NaN may have any code.
struct sum_kernels {
  /// sums[i] += value of codes[i], or by fma its square, for i < n.
  void (*add)(std::uint32_t* sums, const std::byte* codes, std::int64_t n, format_id format,
              bool squares);
  /// weight[i] = fma(grad[i] * (x[i] - mean), rstd, weight[i]) and bias[i] += grad[i], for i < n.
  /// `grad` and `x` are codes.
  void (*add_products)(std::uint32_t* weight, std::uint32_t* bias, const std::byte* grad,
                       const std::byte* x, std::int64_t n, format_id format,
                       const numerics::torch_2_11::row_statistics& of_row);
  kernel_scope in_scope;
};

/// A reduction over axes of at least one element.
struct axis_call {
  numerics::torch_2_11::axis_plan plan;
  axis_reduction of;
  std::int64_t offset;  ///< 0..7 elements from a 16-byte boundary to the tensor
  const std::byte* in;
  matrix_view out;  ///< with as many elements as the plan has outputs
};

/// Gradients of LayerNorm's or RMSNorm's parameters, of matrices that are not empty.
struct norm_parameters_call {
  numerics::torch_2_11::parameter_order order;
  const_matrix_view grad = {};
  const_matrix_view in = {};
  const_matrix_view mean = {};  ///< without data: +0
  const_matrix_view rstd = {};
  matrix_view weight = {};  ///< [order.blocks, cols]
  matrix_view bias = {};    ///< [order.blocks, cols]; without data: not wanted
};

/// The gradient of an embedding's weights.
struct embedding_call {
  bool few = true;  ///< numerics::torch_2_11::few_indices()
  const_matrix_view grad = {};
  /// The rows of `grad` with a word that has a gradient, sorted by word; rows of a word rise.
  std::span<const std::int64_t> rows = {};
  std::span<const std::int64_t> words = {};  ///< the word of each of these rows
  matrix_view out = {};                      ///< zeros where no word is written
};

/// The same in device memory, in PyTorch's deterministic order; `out` is not empty.
struct device_embedding_call {
  bool few = true;
  const_matrix_view grad = {};
  const std::int64_t* indices = nullptr;  ///< the word of each row of `grad`; others are left out
  std::int64_t padding = -1;
  matrix_view out = {};
};

// All by a backend's kernels, on threads.
void reduce_axes_on_threads(const axis_call& call, const executor& where, const sum_kernels& sums);
void norm_parameters_on_threads(const norm_parameters_call& call, const executor& where,
                                const sum_kernels& sums);
void embedding_gradient_on_threads(const embedding_call& call, const executor& where,
                                   const sum_kernels& sums);
/// norms[i] = the norm of tensors[i], binary32 bits. Tensors lie in host memory in fp32, fp16 or
/// bf16.
void foreach_norm_on_threads(std::span<const const_matrix_view> tensors, std::uint32_t* norms,
                             const executor& where, const sum_kernels& sums);

}  // namespace samebits::backends
