/* Functions of rows: softmax, log_softmax and LayerNorm, by a rule that says whose bits they
 * return. */
#ifndef SAMEBITS_C_ROW_FUNCTIONS_H
#define SAMEBITS_C_ROW_FUNCTIONS_H

#include "samebits/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options of samebits_softmax(), samebits_log_softmax() and their gradients. */
typedef struct samebits_softmax_options {
  uint32_t struct_size;
  int32_t rule;   /* samebits_function_rule; the caller sets it */
  int64_t offset; /* elements from a 16-byte boundary of the GPU's memory to the tensor, >= 0 */
  /* Of rule ..._TRITON_3_6, which softmax alone has: */
  int32_t num_warps;           /* of the kernel, a power of two from 1 to 32 */
  int32_t elements_per_thread; /* that a thread loads together, 1, 2, 4 or 8; 0: 16 bytes */
} samebits_softmax_options;
#define SAMEBITS_SOFTMAX_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_softmax_options), 0, 0, 4, 0 }
SAMEBITS_C_API samebits_status samebits_softmax_options_init(samebits_softmax_options* options);

/* Computes the softmax of every row, with the bits that options->rule names.
 *
 * @param in  [rows, cols] in fp32, fp16 or bf16, host memory; options->offset is its offset
 * @param out  the shape and format of `in`. `out` may be the same memory as `in` if the strides are
 *   equal.
 * @param options  null: the defaults, whose rule no function has
 * @param where  null: one thread, default backend
 * @returns the errors of samebits_convert(); SAMEBITS_UNSUPPORTED also if the rule lacks the
 *   function in this format, and for device views
 * @note Thread-safe. */
SAMEBITS_C_API samebits_status samebits_softmax(const samebits_view* in, const samebits_view* out,
                                                const samebits_softmax_options* options,
                                                const samebits_executor* where);

/* Computes the logarithm of softmax of every row. Arguments and errors as in samebits_softmax(). */
SAMEBITS_C_API samebits_status samebits_log_softmax(const samebits_view* in,
                                                    const samebits_view* out,
                                                    const samebits_softmax_options* options,
                                                    const samebits_executor* where);

/* Computes the gradient of softmax's argument as PyTorch's backward pass does.
 *
 * @param grad  the gradient of softmax's result
 * @param result  softmax's result, in the shape and format of `grad`
 * @param out  as in samebits_softmax(); may also be the same memory as `grad` or `result`
 * @param options  as in samebits_softmax(); the offset changes nothing
 * @returns as samebits_softmax() */
SAMEBITS_C_API samebits_status samebits_softmax_gradient(const samebits_view* grad,
                                                         const samebits_view* result,
                                                         const samebits_view* out,
                                                         const samebits_softmax_options* options,
                                                         const samebits_executor* where);

/* Computes the gradient of log_softmax's argument. Arguments and errors as in
 * samebits_softmax_gradient(), but options->offset is that of `grad`. */
SAMEBITS_C_API samebits_status samebits_log_softmax_gradient(
    const samebits_view* grad, const samebits_view* result, const samebits_view* out,
    const samebits_softmax_options* options, const samebits_executor* where);

/* Options of samebits_layer_norm() and samebits_layer_norm_gradient(). */
typedef struct samebits_layer_norm_options {
  uint32_t struct_size;
  int32_t rule;   /* samebits_function_rule; the caller sets it to ..._TORCH_2_11 */
  double epsilon; /* added to the variance, rounded to fp32 */
  int64_t offset; /* elements from a 16-byte boundary of the GPU's memory to `in`, >= 0; a number
                     that is no multiple of 4 if weight or bias is not aligned to 4 elements */
} samebits_layer_norm_options;
#define SAMEBITS_LAYER_NORM_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_layer_norm_options), 0, 1e-5, 0 }
SAMEBITS_C_API samebits_status
samebits_layer_norm_options_init(samebits_layer_norm_options* options);

/* Computes LayerNorm over every row: (x - mean) * rstd * weight + bias.
 *
 * @param in  [rows, cols] in fp32, fp16 or bf16, host memory
 * @param weight, bias  [1, cols] in the format of `in`; null: ones, zeros
 * @param out  as in samebits_softmax()
 * @param mean, rstd  [rows, 1] in fp32, written; null: not wanted
 * @returns as samebits_softmax() */
SAMEBITS_C_API samebits_status samebits_layer_norm(const samebits_view* in,
                                                   const samebits_view* weight,
                                                   const samebits_view* bias,
                                                   const samebits_view* out,
                                                   const samebits_view* mean,
                                                   const samebits_view* rstd,
                                                   const samebits_layer_norm_options* options,
                                                   const samebits_executor* where);

/* Computes the gradient of LayerNorm's argument as PyTorch's backward pass does.
 *
 * @param grad  the gradient of samebits_layer_norm()'s result
 * @param in  its argument, in the shape and format of `grad`
 * @param mean, rstd  [rows, 1] in fp32, as samebits_layer_norm() wrote them
 * @param weight  [1, cols] in the format of `in`; null: ones
 * @param out  as in samebits_softmax(); may also be the same memory as `grad` or `in`
 * @param options  as in samebits_layer_norm(); epsilon and offset change nothing
 * @returns as samebits_softmax() */
SAMEBITS_C_API samebits_status samebits_layer_norm_gradient(
    const samebits_view* grad, const samebits_view* in, const samebits_view* mean,
    const samebits_view* rstd, const samebits_view* weight, const samebits_view* out,
    const samebits_layer_norm_options* options, const samebits_executor* where);

#ifdef __cplusplus
}
#endif

#endif
