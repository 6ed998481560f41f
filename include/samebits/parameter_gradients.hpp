// Gradients of parameters: of LayerNorm's and RMSNorm's weights and biases, and of an embedding's
// weights, with the bits that PyTorch returns on a GPU. The gradient of a linear layer's bias is a
// sum over rows: reduce_axes().
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/function.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Options of norm_parameter_gradients().
struct norm_parameter_options {
  /// Whose bits the call returns (contract §14): function_rule::torch_2_11 is the only rule.
  function_rule rule = function_rule::exact;
  /// Streaming multiprocessors of the GPU, >= 2: an H100 and an H200 have 132. They matter above
  /// 65536 rows.
  int multiprocessors = 132;
};

/// Computes the gradients of LayerNorm's weight and bias, or of RMSNorm's weight: sums over the
/// rows of grad * (in - mean) * rstd, and of grad. Every NaN result is the canonical NaN; without
/// rows the gradients are +0.
///
/// @param grad  [rows, cols], the gradient of the norm's result, in fp32, fp16 or bf16, host or device
///   memory
/// @param in  the norm's argument, in the shape and format of `grad`
/// @param mean  [rows, 1] in fp32, as layer_norm() wrote it; data null: RMSNorm
/// @param rstd  [rows, 1] in fp32, as layer_norm() or rms_norm() wrote it
/// @param weight, bias  [1, cols] in the format of `grad`, written; data null: not wanted. They
///   must not overlap each other or an argument.
/// @param options  the rule, and the GPU
/// @param where  backend and threads; threads share the columns
/// @throws invalid_argument, before anything is written, if an option is out of range, a shape,
///   format or memory differs from the above, a size or stride is negative, data is null, views
///   overlap, or the backend's name is unknown
/// @throws unsupported for another rule or format, for more than 65536 rows of few columns in device
///   memory, if the partial sums of more than 65536 rows span 2^31 bytes, or if this machine lacks
///   the backend
/// @note Thread-safe. The result does not depend on the executor. Device memory: the call enqueues
///   one kernel on the executor's stream.
void norm_parameter_gradients(const const_matrix_view& grad, const const_matrix_view& in,
                              const const_matrix_view& mean, const const_matrix_view& rstd,
                              const matrix_view& weight, const matrix_view& bias,
                              const norm_parameter_options& options, const executor& where = {});

/// Options of embedding_gradient().
struct embedding_options {
  function_rule rule = function_rule::exact;  ///< as in norm_parameter_options
  /// PyTorch's padding_idx: a word whose gradient is +0. Negative: none.
  std::int64_t padding = -1;
  /// Whether torch.use_deterministic_algorithms(True) was set. Without it, above 3072 indices,
  /// PyTorch adds the parts of a word that occurs more than 20 times in any order; such calls are
  /// refused.
  bool deterministic = false;
};

/// Computes the gradient of an embedding's weights: row w is the sum of the rows of `grad` whose
/// index is w, +0 if there is none. Every NaN result is the canonical NaN.
///
/// @param grad  [indices, cols] in fp32, fp16 or bf16, host or device memory
/// @param indices  the word of each row of `grad`, 0 to out.rows - 1; in the memory of `grad`. In
///   device memory they are not checked: a row with another index is left out.
/// @param out  [words, cols] in the format of `grad`, written; must not overlap `grad`
/// @param options  the rule, and how PyTorch was called
/// @param where  backend and threads; threads share the words
/// @throws invalid_argument, before anything is written, if an index is none of a word, or as
///   norm_parameter_gradients() does
/// @throws unsupported if a word's sum has no order (embedding_options::deterministic; in device
///   memory it must be set for more than 3072 indices or a padding index), in device memory for 2^31
///   rows or more or rows of `out` that are not dense, or as norm_parameter_gradients() does
/// @note Thread-safe. The result does not depend on the executor. Device memory: the call enqueues
///   its kernels on the executor's stream; 24 bytes a row come from the stream's memory pool.
void embedding_gradient(const const_matrix_view& grad, std::span<const std::int64_t> indices,
                        const matrix_view& out, const embedding_options& options,
                        const executor& where = {});

}  // namespace samebits
