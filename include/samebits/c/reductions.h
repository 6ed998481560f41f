/* Reductions in a fixed order of steps: sums, dot products, amax and counts of matrices. */
#ifndef SAMEBITS_C_REDUCTIONS_H
#define SAMEBITS_C_REDUCTIONS_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Views are in fp32, fp16, bf16, e4m3 or e5m2 with any strides. Elements are counted row by row.
 * Results depend only on the elements in this order. `where` may be null.
 *
 * Errors: SAMEBITS_INVALID_ARGUMENT, SAMEBITS_UNSUPPORTED, SAMEBITS_CUDA_ERROR;
 * SAMEBITS_ENVIRONMENT_ERROR in a process or on a GPU that does not compute in IEEE 754 steps.
 *
 * Functions without `enqueue` in their names wait for the stream and write to host memory. */

/* Numbers of elements that are NaN, infinite, zero and subnormal in their own format. */
typedef struct samebits_element_counts {
  uint64_t elements;
  uint64_t nan;
  uint64_t inf;
  uint64_t zeros; /* of either sign */
  uint64_t subnormals;
} samebits_element_counts;

/* Format that samebits_dot() rounds each product and each sum to. */
typedef int32_t samebits_accumulation;
enum { SAMEBITS_ACCUMULATION_FP32 = 0, SAMEBITS_ACCUMULATION_FP64 = 1 };

/* The order in which samebits_dot() adds its products. */
typedef int32_t samebits_sum_order;
enum {
  SAMEBITS_SUM_ORDER_TREE = 0,      /* the tree of samebits_sum() */
  SAMEBITS_SUM_ORDER_SEQUENTIAL = 1 /* ((p0 + p1) + p2) + ..., on one thread */
};

/* Options of samebits_dot(). */
typedef struct samebits_dot_options {
  uint32_t struct_size;
  int32_t precision; /* samebits_accumulation */
  int32_t order;     /* samebits_sum_order */
} samebits_dot_options;
#define SAMEBITS_DOT_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_dot_options), SAMEBITS_ACCUMULATION_FP64, SAMEBITS_SUM_ORDER_TREE }
SAMEBITS_C_API samebits_status samebits_dot_options_init(samebits_dot_options* options);

/* Writes the max magnitude; NaN (7FFFFFFF) if any element is NaN, +0 for an empty matrix. */
SAMEBITS_C_API samebits_status samebits_amax(const samebits_view* in, float* result,
                                             const samebits_executor* where);
/* Counts the elements by kind. */
SAMEBITS_C_API samebits_status samebits_counts(const samebits_view* in,
                                               samebits_element_counts* result,
                                               const samebits_executor* where);
/* Writes the sum of the elements in binary64, over a fixed tree in which neighbours are added
 * pairwise. If the sum is NaN, its code is 7FFFFFFFFFFFFFFF. */
SAMEBITS_C_API samebits_status samebits_sum(const samebits_view* in, double* result,
                                            const samebits_executor* where);
/* Writes the sum of the squares, each rounded to binary64, over the tree of samebits_sum(). */
SAMEBITS_C_API samebits_status samebits_sum_of_squares(const samebits_view* in, double* result,
                                                       const samebits_executor* where);
/* Writes the sum of the products of x and y, views of one shape. `options` may be null. */
SAMEBITS_C_API samebits_status samebits_dot(const samebits_view* x, const samebits_view* y,
                                            const samebits_dot_options* options, double* result,
                                            const samebits_executor* where);

/* The functions below enqueue the same work on device memory and return. They can be captured
 * into a CUDA graph.
 *
 * @param result  device memory, aligned as its type requires
 * @param workspace  device memory that only this call uses until its work is done, aligned to 16;
 *   null: memory from the stream's memory pool
 * @param workspace_bytes  samebits_reduction_workspace() or more; 0 for a null workspace */

/* Writes the bytes of workspace that a sum or dot product of a matrix of this shape needs. */
SAMEBITS_C_API samebits_status samebits_reduction_workspace(const samebits_view* in, size_t* bytes,
                                                            const samebits_executor* where);
SAMEBITS_C_API samebits_status samebits_enqueue_amax(const samebits_view* in, float* result,
                                                     const samebits_executor* where);
SAMEBITS_C_API samebits_status samebits_enqueue_counts(const samebits_view* in,
                                                       samebits_element_counts* result,
                                                       const samebits_executor* where);
SAMEBITS_C_API samebits_status samebits_enqueue_sum(const samebits_view* in, double* result,
                                                    void* workspace, size_t workspace_bytes,
                                                    const samebits_executor* where);
SAMEBITS_C_API samebits_status samebits_enqueue_sum_of_squares(const samebits_view* in,
                                                               double* result, void* workspace,
                                                               size_t workspace_bytes,
                                                               const samebits_executor* where);
SAMEBITS_C_API samebits_status samebits_enqueue_dot(const samebits_view* x, const samebits_view* y,
                                                    const samebits_dot_options* options,
                                                    double* result, void* workspace,
                                                    size_t workspace_bytes,
                                                    const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
