// Functions of rows: softmax, log_softmax, LayerNorm and RMSNorm, by a rule that says whose bits
// they return.
#pragma once

#include <cstdint>

#include "samebits/backend.hpp"
#include "samebits/core/function.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Options of softmax(), log_softmax() and their gradients.
struct softmax_options {
  /// Whose bits the call returns (contract §11): function_rule::torch_2_11, and for softmax() also
  /// function_rule::triton_3_6. No function of rows follows `exact` yet.
  function_rule rule = function_rule::exact;
  /// Elements from a 16-byte boundary of the GPU's memory to the tensor's first element, >= 0.
  /// PyTorch allocates tensors at such a boundary, so `offset` is the tensor's storage_offset().
  /// PyTorch adds the elements of wide rows in another order if `offset` is no multiple of the
  /// elements in 16 bytes.
  std::int64_t offset = 0;
  /// triton_3_6: the kernel's num_warps, a power of two from 1 to 32. The row is one block, of the
  /// next power of two.
  int num_warps = 4;
  /// triton_3_6: consecutive elements that a thread loads, 1, 2, 4 or 8; 0: the elements in 16
  /// bytes, which Triton chooses for dense rows whose address and width it knows to be multiples
  /// of 16. In small blocks Triton and this function use fewer.
  int elements_per_thread = 0;
};

/// Computes the softmax of every row, e^(x - max) / sum of e^(x - max), with the bits that the rule
/// names. Every NaN result is the canonical NaN of the format.
///
/// @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory. options.offset is that of
///   `in`.
/// @param out  the shape and format of `in`. `out` may be the same memory as `in` if the strides
///   are equal. Otherwise they must not overlap.
/// @param options  the rule, and where PyTorch's tensor begins
/// @param where  backend and threads; threads share the rows
/// @throws invalid_argument, before anything is written, if:
///   - the rule is none of the enumerators, `offset` is negative, or num_warps or
///     elements_per_thread has another value than the options list;
///   - the shapes or formats differ, or a size or stride is negative;
///   - the data of a non-empty view is null;
///   - elements of `out` share memory, or views overlap;
///   - the views lie in different memory or not in the backend's memory;
///   - the backend's name is unknown.
/// @throws unsupported if the rule lacks the function in this format, or if this machine lacks the
///   backend.
/// @throws environment_error for device memory if the backend's self-test fails.
/// @note Thread-safe. The result does not depend on the executor. Device memory: the call enqueues
///   one kernel on the executor's stream and allocates nothing.
///
///   std::vector<float> x(4 * 1000), y(x.size());
///   samebits::softmax(samebits::view_of(x.data(), 4, 1000), samebits::view_of(y.data(), 4, 1000),
///                     {.rule = samebits::function_rule::torch_2_11});
void softmax(const const_matrix_view& in, const matrix_view& out, const softmax_options& options,
             const executor& where = {});

/// Computes the logarithm of softmax of every row, (x - max) - log(sum of e^(x - max)). Arguments
/// and errors as in softmax().
void log_softmax(const const_matrix_view& in, const matrix_view& out,
                 const softmax_options& options, const executor& where = {});

/// Computes the gradient of softmax's argument as PyTorch's backward pass does.
///
/// @param grad  the gradient of softmax's result
/// @param result  softmax's result, in the shape and format of `grad`
/// @param out  as in softmax(); may also be the same memory as `grad` or `result`
/// @param options  as in softmax(). `offset` changes nothing: PyTorch adds the elements of a new
///   tensor, grad * result.
/// @throws as softmax() does.
void softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                      const matrix_view& out, const softmax_options& options,
                      const executor& where = {});

/// Computes the gradient of log_softmax's argument as PyTorch's backward pass does. Arguments and
/// errors as in softmax_gradient(), but options.offset is that of `grad`.
void log_softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                          const matrix_view& out, const softmax_options& options,
                          const executor& where = {});

/// Options of layer_norm(), rms_norm() and their gradients.
struct layer_norm_options {
  /// As in softmax_options.
  function_rule rule = function_rule::exact;
  /// Added to the variance, or to RMSNorm's mean square, rounded to binary32.
  double epsilon = 1e-5;
  /// Elements from a 16-byte boundary of the GPU's memory to the first element of `in`, >= 0. If
  /// `weight` or `bias` is not aligned to 4 elements, any offset that is no multiple of 4, such as
  /// 1, gives PyTorch's bits.
  std::int64_t offset = 0;
};

/// Computes LayerNorm over every row: (x - mean) * rstd * weight + bias, where rstd is
/// 1 / sqrt(variance + epsilon).
///
/// @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory
/// @param weight, bias  [1, cols] in the format of `in`; data null: ones, zeros
/// @param out  as in softmax(); must not overlap `weight` and `bias`
/// @param mean, rstd  [rows, 1] in fp32, written; data null: not wanted
/// @param options  the rule, epsilon, and where PyTorch's tensor begins
/// @throws as softmax() does.
/// @note If `out` is empty, nothing is written.
void layer_norm(const const_matrix_view& in, const const_matrix_view& weight,
                const const_matrix_view& bias, const matrix_view& out, const matrix_view& mean,
                const matrix_view& rstd, const layer_norm_options& options,
                const executor& where = {});

/// Computes the gradient of LayerNorm's argument as PyTorch's backward pass does.
///
/// @param grad  the gradient of layer_norm()'s result
/// @param in  layer_norm()'s argument, in the shape and format of `grad`
/// @param mean, rstd  [rows, 1] in fp32, as layer_norm() wrote them
/// @param weight  [1, cols] in the format of `in`; data null: ones
/// @param out  as in softmax(); may also be the same memory as `grad` or `in`
/// @param options  as in layer_norm(); epsilon and `offset` change nothing
/// @throws as softmax() does.
void layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                         const const_matrix_view& mean, const const_matrix_view& rstd,
                         const const_matrix_view& weight, const matrix_view& out,
                         const layer_norm_options& options, const executor& where = {});

/// Computes RMSNorm over every row: x * rstd * weight, where rstd is
/// 1 / sqrt(mean of squares + epsilon).
///
/// @param in, weight, out, rstd, options, where  as in layer_norm()
/// @throws as softmax() does.
/// @note If `out` is empty, nothing is written.
void rms_norm(const const_matrix_view& in, const const_matrix_view& weight, const matrix_view& out,
              const matrix_view& rstd, const layer_norm_options& options,
              const executor& where = {});

/// Computes the gradient of RMSNorm's argument as PyTorch's backward pass does. Arguments and
/// errors as in layer_norm_gradient().
void rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                       const const_matrix_view& rstd, const const_matrix_view& weight,
                       const matrix_view& out, const layer_norm_options& options,
                       const executor& where = {});

}  // namespace samebits
