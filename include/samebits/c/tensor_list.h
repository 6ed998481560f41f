/* Tensor lists: one handle describes many tensors, and each call works on all of them. */
#ifndef SAMEBITS_C_TENSOR_LIST_H
#define SAMEBITS_C_TENSOR_LIST_H

#include "samebits/c/base.h"
#include "samebits/c/convert.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of a list. */
typedef struct samebits_list_tensor {
  samebits_view view; /* in fp32, fp16, bf16, e4m3 or e5m2 */
  const char* name;   /* name in messages; null: the position is used */
  uint32_t group;     /* tensors that belong together have the same number */
  uint32_t reserved;  /* 0 */
} samebits_list_tensor;

/* An immutable list of tensors that lie in one memory. The list does not own its tensors: they must
 * stay where they are while the list is used. */
typedef struct samebits_tensor_list samebits_tensor_list;

/* Creates a list.
 *
 * @param tensors  [count]; copied
 * @param list  receives the list; the caller destroys it
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT, naming the tensor, for a format, size, stride or null data that is
 *     not allowed, mixed memory, or tensors that overlap;
 *   - SAMEBITS_UNSUPPORTED for device memory if no CUDA backend can run;
 *   - SAMEBITS_CUDA_ERROR. */
SAMEBITS_C_API samebits_status samebits_tensor_list_create(const samebits_list_tensor* tensors,
                                                           size_t count,
                                                           samebits_tensor_list** list);
/* Destroys a list. Null is allowed. No list may be destroyed during a CUDA graph capture. */
SAMEBITS_C_API void samebits_tensor_list_destroy(samebits_tensor_list* list);
/* Writes the number of tensors, and of all elements. Either pointer may be null. */
SAMEBITS_C_API samebits_status samebits_tensor_list_size(const samebits_tensor_list* list,
                                                         size_t* tensors, uint64_t* elements);

/* The calls below are thread-safe. `where` may be null: one thread, default backend and stream.
 *
 * Device memory: calls with a report wait for the stream. All other calls are enqueued and return;
 * they can be captured into a CUDA graph, which must not outlive the list.
 *
 * Errors: SAMEBITS_INVALID_ARGUMENT before anything is written, SAMEBITS_UNSUPPORTED,
 * SAMEBITS_ENVIRONMENT_ERROR, SAMEBITS_CUDA_ERROR, SAMEBITS_INCOMPLETE_WRITE. */

/* The kinds of elements that samebits_tensor_list_inspect() counts. */
typedef int32_t samebits_inspect_counts;
enum {
  SAMEBITS_INSPECT_COUNTS_NONFINITE = 0,   /* NaN and Inf */
  SAMEBITS_INSPECT_COUNTS_DISTRIBUTION = 1 /* NaN, Inf, zeros, subnormals and exponents */
};

/* Statistics of one tensor or of all tensors. */
typedef struct samebits_tensor_statistics {
  uint64_t elements;
  uint64_t nan;
  uint64_t inf;
  uint64_t zeros;      /* of either sign; 0 without distribution */
  uint64_t subnormals; /* in their own format; 0 without distribution */
  uint32_t amax_bits;  /* max magnitude as binary32 bits; 7FFFFFFF if an element is NaN */
  uint32_t reserved;   /* 0 */
  double squares;      /* sum of the squares, over the tree of samebits_sum() */
  double norm;         /* sqrt(squares), rounded: the L2 norm */
} samebits_tensor_statistics;

/* Report of samebits_tensor_list_inspect(). */
typedef struct samebits_inspect_report {
  samebits_tensor_statistics total;
  int64_t first_bad; /* position of the first tensor with Inf or NaN, or -1 */
  /* exponents[f] counts elements of all tensors whose binary32 value has exponent field f: zeros
   * and binary32 subnormals at 0, [2^(f - 127), 2^(f - 126)) at 1 .. 254, Inf and NaN at 255. All 0
   * without distribution. */
  uint64_t exponents[256];
} samebits_inspect_report;

/* Reads every element once and counts NaN, Inf and, on request, the distribution.
 *
 * @param list  tensors in fp32, fp16 and bf16
 * @param counts  samebits_inspect_counts
 * @param report  receives the totals
 * @param tensors  [tensor_count]; receives the statistics of each tensor; null: not wanted
 * @param tensor_count  the number of tensors of the list; 0 for null `tensors`
 * @note Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_tensor_list_inspect(
    const samebits_tensor_list* list, int32_t counts, samebits_inspect_report* report,
    samebits_tensor_statistics* tensors, size_t tensor_count, const samebits_executor* where);

/* Computes the L2 norm of all tensors together, and of each tensor.
 *
 * @param total  receives the norm of all tensors
 * @param tensors  [tensor_count]; receives the norm of each tensor; null: not wanted
 * @note Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_tensor_list_l2norm(const samebits_tensor_list* list,
                                                           double* total, double* tensors,
                                                           size_t tensor_count,
                                                           const samebits_executor* where);

/* Report of samebits_tensor_list_unscale(). */
typedef struct samebits_unscale_report {
  uint64_t elements;
  uint64_t nonfinite;  /* Inf or NaN before unscaling */
  uint64_t overflowed; /* finite before unscaling, not after */
  int64_t first_bad;   /* position of the first tensor with either kind, or -1 */
  uint32_t amax_bits;  /* max magnitude before unscaling, as binary32 bits */
  uint32_t reserved;   /* 0 */
} samebits_unscale_report;

/* Unscales in place: x = x * inverse_scale, rounded.
 *
 * @param inverse_scale  not negative and not NaN
 * @param report  may be null
 * @note Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_tensor_list_unscale(const samebits_tensor_list* list,
                                                            float inverse_scale,
                                                            samebits_unscale_report* report,
                                                            const samebits_executor* where);
/* Scales in place: x = x * factor, rounded. `factor` is not NaN. */
SAMEBITS_C_API samebits_status samebits_tensor_list_scale(const samebits_tensor_list* list,
                                                          float factor,
                                                          const samebits_executor* where);
/* Computes out = a * x + b * y, tensor by tensor: both products and the sum are rounded to
 * binary32.
 *
 * @param out  tensors with the shapes of x; a tensor of out may be the tensor of x or y at the same
 *   position */
SAMEBITS_C_API samebits_status samebits_tensor_list_axpby(float a, const samebits_tensor_list* x,
                                                          float b, const samebits_tensor_list* y,
                                                          const samebits_tensor_list* out,
                                                          const samebits_executor* where);
/* Converts tensor by tensor, as samebits_convert() does. With stochastic rounding, tensor i uses
 * the random stream options->random.stream + i. `options` may be null. */
SAMEBITS_C_API samebits_status samebits_tensor_list_cast(const samebits_tensor_list* from,
                                                         const samebits_tensor_list* to,
                                                         const samebits_convert_options* options,
                                                         const samebits_executor* where);
/* Accumulates gradients: acc = acc + x * scale, product and sum rounded, tensor by tensor.
 *
 * @param acc  sums in fp32, fp16 or bf16
 * @param gradients  tensors with the shapes of acc
 * @param scales  one factor per tensor, in the memory of the lists; null: every factor is 1 */
SAMEBITS_C_API samebits_status samebits_tensor_list_accumulate(
    const samebits_tensor_list* acc, const samebits_tensor_list* gradients, const float* scales,
    const samebits_executor* where);

/* Writes the factor that brings a list with this norm down to max_norm: min(1, max_norm / (norm +
 * 1e-6)), rounded; 0 for an infinite norm, NaN for a NaN norm. */
SAMEBITS_C_API samebits_status samebits_clip_factor(double norm, double max_norm, float* factor);
/* Multiplies all tensors by samebits_clip_factor() of their common norm. Writes no element if the
 * factor is 1 or the norm is not finite.
 *
 * @param norm  receives the norm before clipping; may be null
 * @param factor  receives the factor; may be null
 * @note Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_tensor_list_clip(const samebits_tensor_list* list,
                                                         double max_norm, double* norm,
                                                         float* factor,
                                                         const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
