// Fused operators: several elementwise operators of PyTorch in one pass, with the bits that they
// return one after another; and dropout.
#pragma once

#include <cstdint>
#include <span>

#include "samebits/backend.hpp"
#include "samebits/core/function.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/quantize.hpp"
#include "samebits/row_functions.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// Computes out = f(gate) * up for every element. f = silu: SwiGLU, with the bits of
/// torch.nn.functional.silu(gate) * up on a GPU: f(gate) is rounded to the format.
///
/// @param f  silu, gelu or gelu_tanh
/// @param gate, up  [rows, cols] in fp32, fp16 or bf16, host or device memory; both in one format.
///   They may be the halves of one matrix.
/// @param out  the shape and format of `gate`; may be the same memory as an operand if the strides
///   are equal, and must not overlap it otherwise
/// @param rule  whose bits the call returns: function_rule::torch_2_11 is the only rule
/// @param where  backend; threads for host memory, stream for device memory
/// @throws invalid_argument, before anything is written, if:
///   - `f` or `rule` is none of the enumerators;
///   - shapes or formats differ, or a size or stride is negative;
///   - the data of a non-empty view is null;
///   - elements of a result share memory, or views overlap;
///   - the views lie in different memory or not in the backend's memory;
///   - the backend's name is unknown.
/// @throws unsupported for another function, rule or format, or if this machine lacks the backend
/// @throws environment_error for device memory if the backend's self-test fails
/// @note Thread-safe. The result does not depend on the executor. Device memory: the call enqueues
///   one kernel on the executor's stream, allocates nothing and can be captured into a graph.
///
///   samebits::gated(samebits::function::silu, gate, up, out, samebits::function_rule::torch_2_11);
void gated(function f, const const_matrix_view& gate, const const_matrix_view& up,
           const matrix_view& out, function_rule rule, const executor& where = {});

/// Computes the gradients of gate and up as PyTorch's backward pass does.
///
/// @param grad  the gradient of gated()'s result
/// @param of_gate, of_up  the gradients, written; each as `out` in gated(). They share no memory.
/// @throws as gated() does.
void gated_gradient(function f, const const_matrix_view& grad, const const_matrix_view& gate,
                    const const_matrix_view& up, const matrix_view& of_gate,
                    const matrix_view& of_up, function_rule rule, const executor& where = {});

/// Quantizes gated(f, gate, up) without a matrix between: codes, scales and statistics are those of
/// quantize() of gated()'s result, bit for bit.
///
/// @param f, gate, up, rule, where  as in gated()
/// @param outputs, options  as in quantize(); options.workspace is not read. Messages call `gate`
///   `in`.
/// @throws as gated() and quantize() do.
/// @note `cuda-native` has one kernel for 1 x 128 tiles without transposed codes and statistics,
///   rounded to nearest, if the columns are a multiple of 8 and rows of codes are aligned to 8 bytes.
///   All other calls take memory for gated()'s result, on a device from the stream's pool.
void gated_quantize(function f, const const_matrix_view& gate, const const_matrix_view& up,
                    const quantize_outputs& outputs, const quantize_options& options,
                    function_rule rule, const executor& where = {});

/// Computes out = f(x + bias) for every element; x + bias is rounded to the format.
///
/// @param bias  [1, cols] in the format of `x`; must not overlap `out`
/// @param f, x, out, rule, where  as in gated()
/// @throws as gated() does.
void biased(function f, const const_matrix_view& x, const const_matrix_view& bias,
            const matrix_view& out, function_rule rule, const executor& where = {});

/// Computes the gradient of x + bias, which is that of `x`; its sum over rows is that of `bias`.
///
/// @param grad  the gradient of biased()'s result
/// @param f, x, bias, out, rule, where  as in biased(); `out` may also be the same memory as `grad`
/// @throws as gated() does.
void biased_gradient(function f, const const_matrix_view& grad, const const_matrix_view& x,
                     const const_matrix_view& bias, const matrix_view& out, function_rule rule,
                     const executor& where = {});

/// Options of rotate() and rotate_gradient().
struct rotate_options {
  function_rule rule = function_rule::exact;  ///< function_rule::torch_2_11 is the only rule
  /// Consecutive rows of the result that use the same row of `cos` and `sin`, >= 1: row r uses their
  /// row r / each, modulo their number. [batch, heads, positions, d]: 1; [batch, positions, heads,
  /// d]: the number of heads.
  std::int64_t each = 1;
};

/// Applies a rotary embedding: x * cos + rotate_half(x) * sin, where rotate_half(x) is the negative
/// second half of a row, then its first half. Both products are rounded to the format.
///
/// @param in  [rows, 2 * n] in fp32, fp16 or bf16, host or device memory
/// @param cos, sin  [positions, n] in the format of `in`, as rotary_table() fills them: each column
///   is used for one column of both halves. `positions` >= 1 unless `in` is empty.
/// @param out  the shape and format of `in`; as in gated(). Must not overlap `cos` and `sin`.
/// @throws as gated() does, and invalid_argument if the columns of `in` are odd or `each` < 1.
void rotate(const const_matrix_view& in, const const_matrix_view& cos, const const_matrix_view& sin,
            const matrix_view& out, const rotate_options& options, const executor& where = {});

/// Computes the gradient of rotate()'s argument as PyTorch's backward pass does where rotate_half
/// takes slices of x.
///
/// @param grad  the gradient of rotate()'s result, as `in` in rotate()
/// @throws as rotate() does.
void rotate_gradient(const const_matrix_view& grad, const const_matrix_view& cos,
                     const const_matrix_view& sin, const matrix_view& out,
                     const rotate_options& options, const executor& where = {});

/// Options of embed().
struct embed_options {
  function_rule rule = function_rule::exact;  ///< function_rule::torch_2_11 is the only rule
  double scale = 1;  ///< rounded to binary32; Transformers multiply by sqrt(columns)
};

/// Computes rows of a table times options.scale, plus rows of positions: row r is
/// table[indices[r]] * scale + positions[r modulo their number]. The product is rounded to the
/// format.
///
/// @param indices  [rows], from 0 to table.rows - 1, in the memory of `table`. In device memory
///   they are not checked: a row with another index is NaN.
/// @param table  [words, cols] in fp32, fp16 or bf16, host or device memory
/// @param positions  [positions, cols] in the format of `table`; data null: none are added
/// @param out  [rows, cols] in the format of `table`, written; must not overlap the others
/// @throws as gated() does, and invalid_argument for an index in host memory that is none of a word
void embed(std::span<const std::int64_t> indices, const const_matrix_view& table,
           const const_matrix_view& positions, const matrix_view& out, const embed_options& options,
           const executor& where = {});

/// Options of dropout().
struct dropout_options {
  double probability = 0.5;             ///< that an element is dropped, 0 to 1; rounded to binary32
  random_stream random = {.bits = 24};  ///< `bits` is not read
};

/// Computes out = in / (1 - probability) where an element is kept, else +0. Its gradient is the same
/// function of the gradient.
///
/// The random bits of an element depend on (seed, stream, offset + row * pitch + col) alone
/// (contract §3), so that every device, grid and shard drops the same elements, and no mask is
/// stored. This is the library's own rule: PyTorch drops other elements. An element is dropped if
/// its 24 random bits are below probability * 2^24. A kept one is multiplied by
/// RN(1 / RN(1 - probability)), binary32, and rounded to the format. A dropped Inf or NaN gives +0.
///
/// @param in, out, where  as gate and out in gated()
/// @throws as gated() does, and invalid_argument if the probability is not from 0 to 1.
void dropout(const const_matrix_view& in, const matrix_view& out, const dropout_options& options,
             const executor& where = {});

/// Options of clip_fake_quantize() and its gradient.
struct clip_fake_quantize_options {
  int bits = 8;  ///< 2 to 16: numbers of 2^(bits - 1) - 1 levels on each side of 0
};

/// Computes the nearest of the numbers i / L * clip, for integers i from -L to L, L = 2^(bits - 1) -
/// 1: quantization to integers with a clip that is trained, and dequantization. The library's own
/// rule: RN(x / clip) is limited to -1..1; times L, rounded to a whole number (nearest even), over L,
/// times clip. Each step is rounded to binary32, the last to the format. NaN stays NaN.
///
/// @param in, out, where  as gate and out in gated()
/// @param clip  [1, 1] in the format and memory of `in`, > 0; must not overlap `out`
/// @throws as gated() does, and invalid_argument for other bits.
void clip_fake_quantize(const const_matrix_view& in, const const_matrix_view& clip,
                        const matrix_view& out, const clip_fake_quantize_options& options = {},
                        const executor& where = {});

/// Computes the gradients as if rounding were the identity: that of `in` is `grad` where |in| <= clip,
/// else +0; that of the clip is the sum of `grad` over elements above clip minus that over elements
/// below -clip.
///
/// @param grad  the gradient of clip_fake_quantize()'s result
/// @param of_in  the gradient of `in`, written
/// @param of_clip  the shape of `in`, written: what each element adds to the gradient of the clip
/// @throws as clip_fake_quantize() does.
void clip_fake_quantize_gradient(const const_matrix_view& grad, const const_matrix_view& in,
                                 const const_matrix_view& clip, const matrix_view& of_in,
                                 const matrix_view& of_clip,
                                 const clip_fake_quantize_options& options = {},
                                 const executor& where = {});

/// Options of scaled_softmax() and its gradient. Rows are [batch, heads, queries].
struct scaled_softmax_options {
  function_rule rule = function_rule::exact;  ///< function_rule::torch_2_11 is the only rule
  double scale = 1;                           ///< rounded to binary32
  bool causal = false;                        ///< row q of `queries` sees its columns 0 to q alone
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  /// [mask rows, cols], in the memory of the scores; data null: none. In the format of the scores:
  /// added to them. In format_id::e8m0, a byte each: scores whose byte is not 0, such as true, are
  /// filled with -Inf.
  const_matrix_view mask = {};
  /// Rows of the mask from one batch, head and query to the next; 0: they have the same row. The
  /// default: each row of the scores has its own, if `heads` and `queries` are 1.
  std::int64_t mask_steps[3] = {1, 0, 0};
};

/// Computes softmax of masked scores, as PyTorch's operators do one after another: RN(in * scale);
/// masked_fill(mask, -Inf) or RN(... + mask); masked_fill above the diagonal, if causal; softmax().
/// Each rounds to the format. A row without a visible number is NaN.
///
/// @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory
/// @param out  as in softmax(); must not overlap the mask
/// @throws as softmax() does, and invalid_argument if
///   - `heads` or `queries` is below 1, or rows are no multiple of their product;
///   - a step is negative, or the mask has other columns, another format or too few rows.
/// @note Device memory: one kernel, which reads and writes each score once where a row fits the
///   registers of a block. It does not read the scores of hidden vectors.
void scaled_softmax(const const_matrix_view& in, const matrix_view& out,
                    const scaled_softmax_options& options, const executor& where = {});

/// Computes the gradient of scaled_softmax()'s argument: softmax_gradient(), +0 where a score is
/// filled, times the scale.
///
/// @param grad  the gradient of scaled_softmax()'s result
/// @param result  scaled_softmax()'s result, in the shape and format of `grad`
/// @param out  as in softmax_gradient()
/// @throws as scaled_softmax() does.
void scaled_softmax_gradient(const const_matrix_view& grad, const const_matrix_view& result,
                             const matrix_view& out, const scaled_softmax_options& options,
                             const executor& where = {});

/// Computes sum = in + added, rounded to the format, and LayerNorm of the sum as layer_norm() does: a
/// residual connection and the norm behind it.
///
/// @param in, added  [rows, cols] in fp32, fp16 or bf16, host or device memory. Each may be the same
///   memory as `sum` or `out` if the strides are equal, and must not overlap them otherwise.
/// @param weight, bias, mean, rstd  as in layer_norm()
/// @param sum, out  the shape and format of `in`, written; they share no memory
/// @param options  as in layer_norm(); `offset` is that of PyTorch's sum, a new tensor: 0, or 1 if
///   `weight` or `bias` is not aligned to 4 elements
/// @throws as layer_norm() does.
/// @note Device memory: one kernel, which reads and writes each element once where a row fits the
///   registers of a block.
void add_layer_norm(const const_matrix_view& in, const const_matrix_view& added,
                    const const_matrix_view& weight, const const_matrix_view& bias,
                    const matrix_view& sum, const matrix_view& out, const matrix_view& mean,
                    const matrix_view& rstd, const layer_norm_options& options,
                    const executor& where = {});

/// The same with RMSNorm, as rms_norm() computes it.
void add_rms_norm(const const_matrix_view& in, const const_matrix_view& added,
                  const const_matrix_view& weight, const matrix_view& sum, const matrix_view& out,
                  const matrix_view& rstd, const layer_norm_options& options,
                  const executor& where = {});

/// Quantizes layer_norm(in), or the norm of sum = in + added, without a matrix between: codes, scales,
/// statistics, sum, mean and rstd are those of add_layer_norm() or layer_norm(), then quantize(), bit
/// for bit.
///
/// @param added  as in add_layer_norm(); data null: `in` itself is normalized, and `sum` is not read
/// @param in, weight, bias, sum, mean, rstd, options, where  as in add_layer_norm() and layer_norm()
/// @param outputs, quantization  as in quantize(); quantization.workspace is not read
/// @throws as add_layer_norm() and quantize() do.
/// @note `cuda-native` has one kernel for 1 x 128 tiles without transposed codes and statistics,
///   rounded to nearest, if the columns are a multiple of 8 up to 8192 (of fp32 sums 4096), rows of
///   operands are aligned to 4 elements and rows of codes to 8 bytes. All other calls take memory for
///   the norm, on a device from the stream's pool.
void layer_norm_quantize(const const_matrix_view& in, const const_matrix_view& added,
                         const const_matrix_view& weight, const const_matrix_view& bias,
                         const matrix_view& sum, const matrix_view& mean, const matrix_view& rstd,
                         const quantize_outputs& outputs, const quantize_options& quantization,
                         const layer_norm_options& options, const executor& where = {});

/// Quantizes rms_norm(in), or RMSNorm of sum = in + added, as layer_norm_quantize() does.
void rms_norm_quantize(const const_matrix_view& in, const const_matrix_view& added,
                       const const_matrix_view& weight, const matrix_view& sum,
                       const matrix_view& rstd, const quantize_outputs& outputs,
                       const quantize_options& quantization, const layer_norm_options& options,
                       const executor& where = {});

/// Computes the gradient of the sum, which is that of `in` and of `added`: the gradient of
/// layer_norm()'s argument, rounded to the format, plus the gradient that reaches the sum itself.
///
/// @param grad  the gradient of the norm's result
/// @param of_sum  the gradient of `sum` by its other users; data null: none. Must not overlap `out`.
/// @param sum, mean, rstd  as add_layer_norm() wrote them
/// @param weight, out, options  as in layer_norm_gradient()
/// @throws as layer_norm_gradient() does.
void add_layer_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                             const const_matrix_view& sum, const const_matrix_view& mean,
                             const const_matrix_view& rstd, const const_matrix_view& weight,
                             const matrix_view& out, const layer_norm_options& options,
                             const executor& where = {});

/// The same of RMSNorm.
void add_rms_norm_gradient(const const_matrix_view& grad, const const_matrix_view& of_sum,
                           const const_matrix_view& sum, const const_matrix_view& rstd,
                           const const_matrix_view& weight, const matrix_view& out,
                           const layer_norm_options& options, const executor& where = {});

}  // namespace samebits
