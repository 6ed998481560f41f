/* Array arithmetic: an operation on every element of views; each result is rounded once. */
#ifndef SAMEBITS_C_ARRAY_ARITHMETIC_H
#define SAMEBITS_C_ARRAY_ARITHMETIC_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An operation on one, two or three operands. */
typedef int32_t samebits_operation;
enum {
  SAMEBITS_OPERATION_ADD = 0,  /* a + b */
  SAMEBITS_OPERATION_SUB = 1,  /* a - b */
  SAMEBITS_OPERATION_MUL = 2,  /* a * b */
  SAMEBITS_OPERATION_DIV = 3,  /* a / b */
  SAMEBITS_OPERATION_SQRT = 4, /* the square root of a */
  SAMEBITS_OPERATION_FMA = 5,  /* a * b + c */
  SAMEBITS_OPERATION_REM = 6,  /* a - n * b, n = a / b rounded to the nearest integer, ties even */
  SAMEBITS_OPERATION_RINT = 7, /* a rounded to an integer by the rounding mode */
  SAMEBITS_OPERATION_MIN = 8,  /* the smaller operand; NaN if either operand is NaN */
  SAMEBITS_OPERATION_MAX = 9,  /* the larger operand; NaN if either operand is NaN */
  SAMEBITS_OPERATION_MIN_NUM = 10, /* the smaller operand; if one is NaN, the other one */
  SAMEBITS_OPERATION_MAX_NUM = 11  /* the larger operand; if one is NaN, the other one */
};

/* The five exceptions of IEEE 754, as bits of a flags byte. */
enum {
  SAMEBITS_FLAG_INVALID = 1,
  SAMEBITS_FLAG_DIVIDE_BY_ZERO = 2,
  SAMEBITS_FLAG_OVERFLOW = 4,
  SAMEBITS_FLAG_UNDERFLOW = 8,
  SAMEBITS_FLAG_INEXACT = 16
};

/* Options of samebits_compute(). */
typedef struct samebits_compute_options {
  uint32_t struct_size;
  int32_t rounding;              /* samebits_rounding */
  int32_t overflow;              /* samebits_overflow */
  int32_t nan_policy;            /* samebits_nan_policy */
  samebits_random_stream random; /* read only by stochastic rounding */
} samebits_compute_options;
#define SAMEBITS_COMPUTE_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_compute_options), 0, 0, 0, SAMEBITS_RANDOM_STREAM_INIT }
SAMEBITS_C_API samebits_status samebits_compute_options_init(samebits_compute_options* options);

/* Receives one flags byte per element: a matrix of the shape of `out`, in the memory of `out`. */
typedef struct samebits_flags_view {
  uint8_t* data;
  int64_t row_stride; /* in bytes */
  int64_t col_stride; /* in bytes */
} samebits_flags_view;

/* Computes out = op(a, b, c) for every element, each result rounded once.
 *
 * @param op  samebits_operation
 * @param a  operand in fp32, fp16, bf16, e4m3 or e5m2, of the shape of `out`. Strides of 0 repeat a
 *   row, a column or one number. Operands may have different formats.
 * @param b  as a; null if the operation has no second operand
 * @param c  as a; null if the operation has no third operand
 * @param out  [rows, cols] in fp32, fp16, bf16, e4m3 or e5m2, host or device memory. `out` may
 *   be the same memory as an operand if element size and strides are equal.
 * @param options  null: the defaults
 * @param where  null: one thread, default backend and stream
 * @returns the errors of samebits_convert(); SAMEBITS_INVALID_ARGUMENT also for an unknown
 *   operation or a format without arithmetic
 * @note Thread-safe. Device views: the call is enqueued on where->stream and returns. */
SAMEBITS_C_API samebits_status samebits_compute(int32_t op, const samebits_view* a,
                                                const samebits_view* b, const samebits_view* c,
                                                const samebits_view* out,
                                                const samebits_compute_options* options,
                                                const samebits_executor* where);

/* Computes as samebits_compute() does and reports the flags.
 *
 * @param each  receives the flags of each element; null: not written
 * @param raised  receives the flags that any element raised
 * @note Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_compute_with_flags(
    int32_t op, const samebits_view* a, const samebits_view* b, const samebits_view* c,
    const samebits_view* out, const samebits_compute_options* options,
    const samebits_flags_view* each, uint32_t* raised, const samebits_executor* where);

/* Computes as samebits_compute_with_flags() does on device memory, without waiting.
 *
 * @param raised  4 bytes of device memory, aligned to 4; receives the flags that any element raised
 * @note Enqueued on where->stream. Allocates nothing. Can be captured into a CUDA graph. */
SAMEBITS_C_API samebits_status samebits_enqueue_compute_with_flags(
    int32_t op, const samebits_view* a, const samebits_view* b, const samebits_view* c,
    const samebits_view* out, const samebits_compute_options* options,
    const samebits_flags_view* each, uint32_t* raised, const samebits_executor* where);

/* A code and its format. */
typedef struct samebits_operand {
  uint64_t code;
  int32_t format;   /* samebits_format */
  int32_t reserved; /* 0 */
} samebits_operand;

/* A code and the flags that its computation raised. */
typedef struct samebits_computed {
  uint64_t code;
  uint32_t flags;
  int32_t reserved; /* 0 */
} samebits_computed;

/* Computes an operation on single codes, rounded once into `to`.
 *
 * @param operands  as many operands as the operation has: 1, 2 or 3
 * @param to  format of the result: fp32, fp16, bf16, e4m3 or e5m2
 * @param rule  null: the defaults */
SAMEBITS_C_API samebits_status samebits_compute_code(int32_t op, const samebits_operand* operands,
                                                     int32_t to, const samebits_cast_rule* rule,
                                                     samebits_computed* result);

#ifdef __cplusplus
}
#endif
#endif
