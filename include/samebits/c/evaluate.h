/* Functions of arrays and of tensor lists: exp, tanh, gelu and others, by a rule that says whose
 * bits they return. */
#ifndef SAMEBITS_C_EVALUATE_H
#define SAMEBITS_C_EVALUATE_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"
#include "samebits/c/tensor_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A function of one number: see samebits/core/function.hpp. */
typedef int32_t samebits_function;
enum {
  SAMEBITS_FUNCTION_EXP = 0,
  SAMEBITS_FUNCTION_EXP2 = 1,
  SAMEBITS_FUNCTION_EXPM1 = 2,
  SAMEBITS_FUNCTION_LOG = 3,
  SAMEBITS_FUNCTION_LOG2 = 4,
  SAMEBITS_FUNCTION_LOG10 = 5,
  SAMEBITS_FUNCTION_LOG1P = 6,
  SAMEBITS_FUNCTION_SIN = 7,
  SAMEBITS_FUNCTION_COS = 8,
  SAMEBITS_FUNCTION_TANH = 9,
  SAMEBITS_FUNCTION_ERF = 10,
  SAMEBITS_FUNCTION_ERFC = 11,
  SAMEBITS_FUNCTION_POW = 12,
  SAMEBITS_FUNCTION_RSQRT = 13,
  SAMEBITS_FUNCTION_RECIPROCAL = 14,
  SAMEBITS_FUNCTION_SIGMOID = 15,
  SAMEBITS_FUNCTION_SILU = 16,
  SAMEBITS_FUNCTION_GELU = 17,
  SAMEBITS_FUNCTION_GELU_TANH = 18,
  SAMEBITS_FUNCTION_SOFTPLUS = 19,
  SAMEBITS_FUNCTION_ELU = 20,
  SAMEBITS_FUNCTION_RELU = 21,
  SAMEBITS_FUNCTION_LEAKY_RELU = 22,
  SAMEBITS_FUNCTION_MISH = 23,
  SAMEBITS_FUNCTION_HARDSWISH = 24,
  SAMEBITS_FUNCTION_FAST_EXP = 25,
  SAMEBITS_FUNCTION_FAST_LOG = 26
};

/* Whose bits a function returns. */
typedef int32_t samebits_function_rule;
enum {
  SAMEBITS_FUNCTION_RULE_EXACT = 0,      /* the exact value, rounded once */
  SAMEBITS_FUNCTION_RULE_CUDA_13_0 = 1,  /* CUDA's functions, compiled by nvcc 13.0 for Hopper */
  SAMEBITS_FUNCTION_RULE_TORCH_2_11 = 2, /* the operators of PyTorch 2.11 on CUDA tensors */
  SAMEBITS_FUNCTION_RULE_TRITON_3_6 = 3, /* functions of Triton 3.6 */
  SAMEBITS_FUNCTION_RULE_TORCH_COMPILE_2_11 = 4 /* kernels that torch.compile makes, PyTorch 2.11 */
};

/* Options of samebits_evaluate(). */
typedef struct samebits_evaluate_options {
  uint32_t struct_size;
  int32_t rule;          /* samebits_function_rule; default: exact */
  int32_t has_parameter; /* 0: the default of `parameter`; pow has none */
  int32_t reserved;      /* 0 */
  double parameter;      /* exponent of pow; alpha of elu, default 1; slope of leaky_relu, 0.01 */
  /* Options of rule exact alone: */
  int32_t rounding; /* samebits_rounding: nearest_even, or stochastic into 16 and 8 bits */
  int32_t overflow; /* samebits_overflow */
  samebits_random_stream random; /* read only by stochastic rounding; bits: 16, in 1..16 */
} samebits_evaluate_options;
#define SAMEBITS_EVALUATE_OPTIONS_INIT                                                     \
  {                                                                                        \
    (uint32_t)sizeof(samebits_evaluate_options), 0, 0, 0, 0.0, 0, 0, { 0, 0, 0, 0, 0, 16 } \
  }
SAMEBITS_C_API samebits_status samebits_evaluate_options_init(samebits_evaluate_options* options);

/* Computes out = f(in) for every element, with the bits that options->rule names.
 *
 * @param f  samebits_function
 * @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory
 * @param out  the shape of `in`, and the format of `in` unless the rule is exact, which also rounds
 *   into fp32, fp16, bf16, e4m3 and e5m2. `out` may be the same memory as `in` if element sizes and
 *   strides are equal.
 * @param options  null: the defaults, rule exact
 * @param where  null: one thread, default backend
 * @returns the errors of samebits_convert(); SAMEBITS_UNSUPPORTED also if the rule lacks the
 *   function in this format
 * @note Thread-safe. Device memory: the call is enqueued on where->stream. The first call that needs
 *   a table of results, for large arrays of fp16 and bf16 by rule exact, computes it and waits. */
SAMEBITS_C_API samebits_status samebits_evaluate(int32_t f, const samebits_view* in,
                                                 const samebits_view* out,
                                                 const samebits_evaluate_options* options,
                                                 const samebits_executor* where);

/* Computes out = grad * f'(in): the gradient of `in`, where `grad` is the gradient of f(in). Rule
 * exact rounds f'(in) to fp32 and its product with `grad` into `out`; rule torch_2_11 returns the
 * results of PyTorch's backward pass. Arguments and errors as in samebits_evaluate(). */
SAMEBITS_C_API samebits_status samebits_evaluate_gradient(int32_t f, const samebits_view* grad,
                                                          const samebits_view* in,
                                                          const samebits_view* out,
                                                          const samebits_evaluate_options* options,
                                                          const samebits_executor* where);

/* Computes out = f(in) tensor by tensor, as samebits_evaluate() does.
 *
 * @param in  tensors in fp32, fp16 or bf16; formats may differ from tensor to tensor
 * @param out  tensors with the shapes of `in`, and with its formats unless the rule is exact. A
 *   tensor of `out` may be the tensor of `in` at the same position.
 * @param options  as in samebits_evaluate(). With stochastic rounding, tensor i uses the random
 *   stream options->random.stream + i.
 * @returns the errors of samebits_evaluate(); nothing is written if one tensor is refused
 * @note Thread-safe. Device memory: one kernel per tensor is enqueued on where->stream. The call can
 *   be captured into a CUDA graph, which must not outlive the lists. */
SAMEBITS_C_API samebits_status samebits_tensor_list_evaluate(
    int32_t f, const samebits_tensor_list* in, const samebits_tensor_list* out,
    const samebits_evaluate_options* options, const samebits_executor* where);

/* Computes out = grad * f'(in) tensor by tensor, as samebits_evaluate_gradient() does. Arguments and
 * errors as in samebits_tensor_list_evaluate(); a tensor of `out` may also be the tensor of `grad`
 * at the same position. */
SAMEBITS_C_API samebits_status samebits_tensor_list_evaluate_gradient(
    int32_t f, const samebits_tensor_list* grad, const samebits_tensor_list* in,
    const samebits_tensor_list* out, const samebits_evaluate_options* options,
    const samebits_executor* where);

#ifdef __cplusplus
}
#endif

#endif
