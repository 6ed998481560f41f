// Cross entropy of logits and class indices, and its gradient, with the bits that PyTorch returns
// on a GPU.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/function.hpp"
#include "samebits/core/loss_reduction.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Options of cross_entropy() and its gradient.
struct cross_entropy_options {
  /// Whose bits the call returns (contract §14): function_rule::torch_2_11 is the only rule.
  function_rule rule = function_rule::exact;
  loss_reduction reduction = loss_reduction::mean;
  /// Whether `in` holds log-probabilities, as torch.nn.functional.nll_loss takes them. The gradient
  /// is then theirs, and labels cannot be smoothed.
  bool log_probabilities = false;
  /// Whether fp16 or bf16 logits are first converted to fp32, as `in.float()` does: everything is
  /// computed in fp32, the loss is fp32, and the gradient is rounded to the format of `in`. Not with
  /// log_probabilities; `offset` is that of the converted logits.
  bool upcast = false;
  double label_smoothing = 0;        ///< 0 to 1
  std::int64_t ignore_index = -100;  ///< rows with this target have no loss
  /// Elements from a 16-byte boundary of the GPU's memory to the first logit, >= 0.
  std::int64_t offset = 0;
  /// Streaming multiprocessors of the GPU, >= 1. They matter with label smoothing.
  int multiprocessors = 132;
  /// For cross_entropy_gradient() on device memory with a reduction: [1, 1] in the format of `grad`. If
  /// `grad` has the same bits, nothing is written: `out` already holds the gradient. Without data,
  /// `out` is always written.
  const_matrix_view known_grad = {};
};

/// Computes torch.nn.functional.cross_entropy(in, targets). Host memory: needs memory of the size of
/// `in`. Every NaN result is the canonical NaN; the mean of no row is NaN.
///
/// @param in  [rows, classes], logits in fp32, fp16 or bf16, host or device memory
/// @param targets  the class of each row, 0 to classes - 1, or ignore_index; in the memory of `in`.
///   In device memory they are not checked: the loss and the gradients of a row with another target
///   are NaN.
/// @param loss  [1, 1], or [1, rows] without reduction, in the format of `in`, or in fp32 as with
///   CUDA's autocast: log-probabilities are rounded to the format of `in`, and the loss is not; must
///   not overlap `in`
/// @param options  the rule, and how PyTorch was called
/// @param where  backend and threads
/// @throws invalid_argument, before anything is written, if a target is none of a class, an option
///   is out of range, a shape, format or memory differs from the above, a size or stride is
///   negative, data of a non-empty view is null, views overlap, or the backend's name is unknown
/// @throws unsupported for another rule or format, for device memory with log_probabilities or label
///   smoothing, with label smoothing if the loss has another format or `in` spans 2^31 bytes or more,
///   or if this machine lacks the backend
/// @note Thread-safe. The result does not depend on the executor. Device memory: the call enqueues
///   its kernels on the executor's stream; 4 bytes a row come from the stream's memory pool.
void cross_entropy(const const_matrix_view& in, std::span<const std::int64_t> targets,
                   const matrix_view& loss, const cross_entropy_options& options,
                   const executor& where = {});

/// Computes the gradient of the logits as PyTorch's backward pass does.
///
/// @param grad  the gradient of the loss, in its shape and format
/// @param in, targets, options, where  as in cross_entropy()
/// @param out  the shape and format of `in`, written; may be the same memory as `in` if the strides
///   are equal. Must not overlap `grad`.
/// @throws as cross_entropy() does.
void cross_entropy_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                            std::span<const std::int64_t> targets, const matrix_view& out,
                            const cross_entropy_options& options, const executor& where = {});

/// Computes the loss and the gradient of the logits, each as the functions above do. In device memory
/// the logits are read once, where a row fits the shared memory of a block.
///
/// @param grad, in, targets, options, where  as in cross_entropy_gradient()
/// @param loss  as in cross_entropy(); must not overlap `grad` and `out`
/// @param out  as in cross_entropy_gradient()
/// @throws as cross_entropy() does.
void cross_entropy_and_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                                std::span<const std::int64_t> targets, const matrix_view& loss,
                                const matrix_view& out, const cross_entropy_options& options,
                                const executor& where = {});

}  // namespace samebits
