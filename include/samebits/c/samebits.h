/* samebits in C: conversion, quantization, matrix products, functions, loss scaling and optimizer
 * steps, with the bits of the C++ functions. C99; needs no other header of the library.
 *
 *   #include <samebits/c/samebits.h>
 *
 *   const float x[3] = {0.3f, 1000.0f, 1e-5f};
 *   uint8_t y[3];
 *   const samebits_array in = SAMEBITS_DENSE(x, 1, 3, "fp32");
 *   const samebits_array out = SAMEBITS_DENSE(y, 1, 3, "e4m3");
 *   if (samebits_convert(&in, &out, "overflow=saturate", NULL) != SAMEBITS_OK) {
 *     fprintf(stderr, "%s\n", samebits_last_error());
 *   }
 *
 * Rules of every function:
 * - A function that can fail returns a status; results are written through pointers, which may be
 *   null unless the comment says otherwise. After an error, results are not written.
 * - A null pointer that a comment does not allow is SAMEBITS_INVALID_ARGUMENT.
 * - No C++ exception leaves a function, and no function prints, aborts or ends the process.
 * - Names of formats, rules and options are texts that end with a null byte. An unknown name is
 *   SAMEBITS_INVALID_ARGUMENT, and the message lists the right ones. Texts are copied.
 * - Functions are thread-safe. Calls that get the same scaler must come one after another.
 *
 * The page docs/c_api.md says what the C++ interface has beyond this.
 */
#ifndef SAMEBITS_C_SAMEBITS_H
#define SAMEBITS_C_SAMEBITS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define SAMEBITS_C_API __attribute__((visibility("default")))
#else
#define SAMEBITS_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- version, errors --------------------------------------------------------------------------- */

/* Version of this interface. A library supports callers that were compiled with the same number,
 * which changes if a function or struct is removed or changes its meaning. */
#define SAMEBITS_C_INTERFACE 2

/* Returns the SAMEBITS_C_INTERFACE that the library was compiled with. */
SAMEBITS_C_API int32_t samebits_interface(void);
/* Returns the library's version as 10000 * major + 100 * minor + patch. */
SAMEBITS_C_API int32_t samebits_version(void);

/* What functions return. The errors have the names of the C++ exceptions. */
enum {
  SAMEBITS_OK = 0,
  SAMEBITS_INVALID_ARGUMENT = 1,  /* an argument was refused; nothing was written */
  SAMEBITS_UNSUPPORTED = 2,       /* not supported by this build or machine; nothing was written */
  SAMEBITS_ENVIRONMENT_ERROR = 3, /* process, build or GPU does not compute in IEEE 754 steps */
  SAMEBITS_CALL_ORDER_ERROR = 4,  /* functions of a scaler were called in the wrong order */
  SAMEBITS_SCALE_EXHAUSTED = 5,   /* a loss scaling policy ends the run */
  SAMEBITS_CUDA_ERROR = 6,        /* a CUDA call failed; the message names it */
  SAMEBITS_NO_MEMORY = 7,         /* host memory ran out; nothing was written */
  SAMEBITS_INCOMPLETE_WRITE = 8,  /* the call failed after it had begun to write */
  SAMEBITS_INTERNAL_ERROR = 9     /* an error that no comment names: please report it */
};

/* Returns the message of the last error of the calling thread, or "" if there was none. A call that
 * succeeds keeps the message. The text is valid until the thread's next error. */
SAMEBITS_C_API const char* samebits_last_error(void);

/* --- arrays, options, executors ---------------------------------------------------------------- */

/* A matrix [rows, cols] of codes of one format.
 *
 * Element (r, c) lies (r * row_stride + c * col_stride) elements behind `data`. No alignment is
 * required. Strides are >= 0; a stride of 0 repeats elements and is allowed only for inputs. A size
 * may be 0; then `data` may be null. Functions never write through an array that is an input. */
typedef struct samebits_array {
  void* data;
  int64_t rows;
  int64_t cols;
  int64_t row_stride; /* in elements */
  int64_t col_stride; /* in elements */
  const char* format; /* a name of samebits_format(), or one of another library: "bfloat16" */
  int32_t on_device;  /* 0: `data` is in host memory; 1: in memory of a CUDA device */
} samebits_array;

/* Initializes a dense array [rows, cols] in host memory. */
#define SAMEBITS_DENSE(data, rows, cols, format) \
  { (void*)(data), (rows), (cols), (cols), 1, (format), 0 }

/* Options are one text, such as "overflow=saturate rounding=stochastic seed=7": words NAME=VALUE
 * with spaces between, each name at most once. Null and "" mean the defaults, which comments write
 * behind the name. Most names are those of Python's arguments.
 *
 * Random bits of stochastic rounding ("random options" below; contract, section 3):
 *   seed=0, random_stream=0, offset=0, pitch=(columns), random_bits=32 */

/* Backend, threads and stream of a call; a null pointer means {NULL, 1, NULL}. Every executor
 * returns the same bits; only speed differs.
 *
 * Calls on device memory are enqueued on the stream and return, unless the comment says that they
 * wait. They can be captured into a CUDA graph after a first call outside of it. */
typedef struct samebits_executor {
  const char* backend; /* a name of samebits_backend(); null or "": the default */
  int32_t threads;     /* CPU threads, >= 1; 0: one per hardware thread. Host memory only */
  void* stream;        /* cudaStream_t; null: the default stream. Device memory only */
} samebits_executor;

/* Describes a backend of the library. Call it with i = 0, 1, ... until it returns an error.
 *
 * @param name, why_unsupported  receive texts that are valid until the process ends;
 *   why_unsupported is "" if this machine can run the backend
 * @param on_device  receives 1 if the backend works on device memory, else 0 */
SAMEBITS_C_API int samebits_backend(int32_t i, const char** name, const char** why_unsupported,
                                    int32_t* on_device);

/* Describes a format. Call it with i = 0, 1, ... until it returns an error.
 *
 * @param name  receives a text that is valid until the process ends
 * @param bytes  receives the size of one code in memory */
SAMEBITS_C_API int samebits_format(int32_t i, const char** name, int32_t* bytes);

/* --- arrays ------------------------------------------------------------------------------------ */

/* Converts every element of `in` into the format of `out`, rounded once; between any two formats.
 *
 * @param in, out  [rows, cols], in one memory; the same memory, or without overlap
 * @param options  rounding=nearest_even, overflow=ieee, nan=canonical; random options
 * @param where  may be null */
SAMEBITS_C_API int samebits_convert(const samebits_array* in, const samebits_array* out,
                                    const char* options, const samebits_executor* where);

/* Computes the shape of the scales of a matrix [rows, cols].
 *
 * @param options  those of samebits_quantize(), of which the tile decides
 * @param scale_rows, scale_cols  receive one row and column for each tile */
SAMEBITS_C_API int samebits_scales_shape(int64_t rows, int64_t cols, const char* options,
                                         int64_t* scale_rows, int64_t* scale_cols);

/* Quantizes a matrix tile by tile, each with a scale from its max magnitude.
 *
 *   samebits_quantize(&x, &codes, &scales, "recipe=DEEPGEMM_FP32_CUDA", NULL);
 *
 * @param in  [rows, cols] in fp32, fp16 or bf16
 * @param codes  [rows, cols] in e4m3, e5m2, e2m1, e2m3 or e3m2
 * @param scales  dequantization scales in fp32, e8m0 or e4m3, shaped as samebits_scales_shape() says.
 *   The tensor's scale of rules with two levels is neither taken nor returned.
 * @param options  either recipe=NAME alone, of samebits/recipe.hpp, or:
 *   tile=1x128 (0: the whole extent, as in 1x0), scale=te, eps=0, upper_bound=inf, nonfinite=te,
 *   scale_overflow=flt_max, rounding=nearest_even, overflow=saturate, nan=canonical; random options
 * @param where  may be null */
SAMEBITS_C_API int samebits_quantize(const samebits_array* in, const samebits_array* codes,
                                     const samebits_array* scales, const char* options,
                                     const samebits_executor* where);

/* Dequantizes codes: each element of `out` is the code's value times its scale, rounded once to
 * binary32 and once into the format of `out`: fp32, fp16 or bf16.
 *
 * @param options  those of samebits_quantize(), of which the tile decides
 * @param where  may be null */
SAMEBITS_C_API int samebits_dequantize(const samebits_array* codes, const samebits_array* scales,
                                       const samebits_array* out, const char* options,
                                       const samebits_executor* where);

/* Computes d = a * b + c with an exactly specified accumulation, such as a tensor core's. Host
 * memory only.
 *
 *   samebits_matmul(&a, NULL, &b, NULL, NULL, &d,
 *                   "sum=tensor_core unit=hopper-wgmma promotion=128", NULL);
 *
 * @param a, b  [M, K] and [K, N]; exchange sizes and strides of weights [N, K]
 * @param a_scales, b_scales  dequantization scales of the operands' tiles; null: 1
 * @param c  [M, N] in fp32, fp16 or bf16; null: none
 * @param d  [M, N] in fp32, fp16 or bf16; for sum=exact also fp64
 * @param options  sum=exact, ieee_fp32, fp32_per_128 or tensor_core, without default;
 *   order=ascending for ieee_fp32; for tensor_core unit=hopper-wgmma, promotion=0, unit_result=fp32,
 *   products=0 (those of the widest instruction); slices=1, slice_order=contiguous, slice_tile=1,
 *   slice_sum=ascending, slice_rounding=none, residue_tile=0, fp32_as_tf32=false; a_tile=0x0,
 *   b_tile=0x0, scale_order=(cuBLASLt's), c_enters=last. samebits/core/accumulator.hpp defines them.
 * @param where  may be null */
SAMEBITS_C_API int samebits_matmul(const samebits_array* a, const samebits_array* a_scales,
                                   const samebits_array* b, const samebits_array* b_scales,
                                   const samebits_array* c, const samebits_array* d,
                                   const char* options, const samebits_executor* where);

/* Computes out = f(in) for every element, or out = grad * f'(in).
 *
 * @param function  such as "exp", "tanh" or "gelu_tanh"; samebits/core/function.hpp lists them
 * @param grad  null: f itself; else the gradient of f(in), shaped as `in`
 * @param in, out  [rows, cols], in one memory; the same memory, or without overlap
 * @param options  rule=exact (whose bits: cuda_13_0, torch_2_11, ...), parameter=(of pow, elu and
 *   leaky_relu), rounding=nearest_even, overflow=ieee; random options, with random_bits=16
 * @param where  may be null */
SAMEBITS_C_API int samebits_evaluate(const char* function, const samebits_array* grad,
                                     const samebits_array* in, const samebits_array* out,
                                     const char* options, const samebits_executor* where);

/* --- loss scaling ------------------------------------------------------------------------------ */

/* A loss scale that adapts to the gradients. One training step:
 *
 *   samebits_scaler_scale(scaler, loss, &scaled_loss);           then the backward pass
 *   samebits_scaler_inspect(scaler, gradients, count, NULL, NULL, NULL);
 *   samebits_scaler_step(scaler, &apply, &grad_mul, NULL);
 *   if (apply) samebits_optimizer_step(optimizer, ++step, grad_mul, learning_rate, NULL);
 */
typedef struct samebits_scaler samebits_scaler;

/* Creates a scaler.
 *
 * @param policy  native, torch, apex, apex_amp, megatron or deepspeed (docs/loss_scaling.md)
 * @param options  the policy's settings, such as "init_scale=1024 growth_interval=500"
 * @param scaler  not null; receives the scaler, for samebits_scaler_destroy() */
SAMEBITS_C_API int samebits_scaler_create(const char* policy, const char* options,
                                          samebits_scaler** scaler);
/* Creates a scaler from a text of samebits_scaler_save(), also from one that C++ saved. */
SAMEBITS_C_API int samebits_scaler_load(const char* text, samebits_scaler** scaler);
/* Destroys a scaler; null is allowed. */
SAMEBITS_C_API void samebits_scaler_destroy(samebits_scaler* scaler);

/* Computes loss * scale, rounded once to binary32, for the backward pass. A loss that is not finite
 * is remembered until the step: policy native does not blame the scale for it.
 *
 * @param loss  1 to know the scale
 * @param scaled  receives the scaled loss */
SAMEBITS_C_API int samebits_scaler_scale(samebits_scaler* scaler, float loss, float* scaled);

/* Looks for Inf and NaN in gradients of the scaled loss, which stay as they are. Waits for the
 * stream of gradients in device memory.
 *
 * @param gradients  `count` arrays in fp32, fp16 or bf16, in one memory
 * @param norm  receives the L2 norm of all gradients, which are still scaled
 * @param first_bad  receives the position of the first array with Inf or NaN; -1: none
 * @param where  may be null
 * @returns SAMEBITS_CALL_ORDER_ERROR for a second inspection without a step between */
SAMEBITS_C_API int samebits_scaler_inspect(samebits_scaler* scaler, const samebits_array* gradients,
                                           size_t count, double* norm, int64_t* first_bad,
                                           const samebits_executor* where);

/* Decides on the inspected gradients, and sets the scale of the next step.
 *
 * @param apply  receives 1 if the optimizer may step, else 0
 * @param grad_mul  receives the factor that unscales the gradients, 1 / scale; 0 if apply is 0
 * @param next_scale  receives the scale of the next step
 * @returns SAMEBITS_CALL_ORDER_ERROR without an inspection before; SAMEBITS_SCALE_EXHAUSTED if the
 *   policy ends the run: the gradients must not be applied */
SAMEBITS_C_API int samebits_scaler_step(samebits_scaler* scaler, int32_t* apply, float* grad_mul,
                                        double* next_scale);

/* Writes settings, state and counts as text for a checkpoint. A loaded scaler continues with the
 * bits of an uninterrupted run.
 *
 * @param text  receives the text with its null byte; may be null if size is 0
 * @param size  bytes of `text`; 0: only `length` is written
 * @param length  receives the length without the null byte
 * @returns SAMEBITS_CALL_ORDER_ERROR between samebits_scaler_scale() and the step */
SAMEBITS_C_API int samebits_scaler_save(const samebits_scaler* scaler, char* text, size_t size,
                                        size_t* length);

/* --- optimizers -------------------------------------------------------------------------------- */

/* A contiguous array that a step reads and writes. All 0: there is no such array. */
typedef struct samebits_stored {
  void* codes;
  const char* format; /* a stored_format of samebits/core/optimizer.hpp, such as "bf16_nearest" */
  float* scales;      /* one for each block, if the format has scales; a gradient has one or null */
} samebits_stored;

/* One parameter: arrays of `count` elements each. struct optimizer_tensor of samebits/optimizer.hpp
 * lists the combinations of formats. Fields that are 0 mean: none. */
typedef struct samebits_parameter {
  const char* name; /* in messages; may be null */
  int64_t count;
  samebits_stored weights;
  samebits_stored gradient; /* only read */
  samebits_stored master;   /* weights of more bits, which the step computes with */
  samebits_stored states[2];
  void* low;            /* 16 bits beside each of bf16 weights */
  const char* low_kind; /* "split" or "kahan", if there is `low` */
  uint64_t first_index; /* index of element 0 in the unsharded parameter */
} samebits_parameter;

/* The parameters of an optimizer, their rule and their settings. */
typedef struct samebits_optimizer samebits_optimizer;

/* Creates an optimizer. The arrays must stay where they are until it is destroyed.
 *
 * @param parameters  `count` parameters; parameter i uses random stream number first_parameter + i
 * @param on_device  1: all arrays lie in device memory; 0: in host memory
 * @param options  rule=adamw (adam, sgd, lion, lamb), profile=strict (docs/optimizers.md),
 *   beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0, momentum=0, dampening=0, nesterov=false,
 *   seed=0 (of stochastic formats), block=128 (elements per scale, or 256), first_parameter=0
 * @param optimizer  not null; receives the optimizer, for samebits_optimizer_destroy() */
SAMEBITS_C_API int samebits_optimizer_create(const samebits_parameter* parameters, size_t count,
                                             int32_t on_device, const char* options,
                                             samebits_optimizer** optimizer);
/* Destroys an optimizer, not its arrays; null is allowed. */
SAMEBITS_C_API void samebits_optimizer_destroy(samebits_optimizer* optimizer);

/* Applies one step to all parameters. A setting that the rule cannot have is refused here.
 *
 * @param step  steps applied so far, this one included; >= 1. Skipped steps do not count
 * @param grad_mul  factor of all gradients: 1 / scale, times the clip factor
 * @param learning_rate  finite, >= 0
 * @param where  may be null */
SAMEBITS_C_API int samebits_optimizer_step(const samebits_optimizer* optimizer, uint64_t step,
                                           float grad_mul, double learning_rate,
                                           const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
