/* Converts arrays between formats; every element is rounded once. */
#ifndef SAMEBITS_C_CONVERT_H
#define SAMEBITS_C_CONVERT_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options of samebits_convert(). */
typedef struct samebits_convert_options {
  uint32_t struct_size;
  int32_t rounding;              /* samebits_rounding */
  int32_t overflow;              /* samebits_overflow */
  int32_t nan_policy;            /* samebits_nan_policy */
  samebits_random_stream random; /* read only by stochastic rounding */
} samebits_convert_options;
#define SAMEBITS_CONVERT_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_convert_options), 0, 0, 0, SAMEBITS_RANDOM_STREAM_INIT }
SAMEBITS_C_API samebits_status samebits_convert_options_init(samebits_convert_options* options);

/* Converts every element of `in` into the format of `out`, between any two formats.
 *
 * The result depends on the inputs and options alone, not on the executor, strides or alignment.
 * With stochastic rounding, one block of a matrix can be converted alone and gets the bits that a
 * conversion of the whole matrix gives: set random.offset to the index of the first element of the
 * block, and random.pitch to the pitch of the whole matrix.
 *
 * @param in  [rows, cols], any format, host or device memory
 * @param out  [rows, cols], any format, in the memory of `in`. `in` and `out` may be the same
 *   memory if their element sizes and strides are equal. Otherwise they must not overlap.
 * @param options  null: the defaults
 * @param where  null: one thread, default backend and stream
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT for views or options that are not allowed;
 *   - SAMEBITS_UNSUPPORTED if this machine lacks the backend, or the backend lacks the conversion;
 *   - SAMEBITS_ENVIRONMENT_ERROR, device views: the backend's self-test fails or cannot run now;
 *   - SAMEBITS_CUDA_ERROR.
 * @note Thread-safe. Device views: the call is enqueued on where->stream and returns. */
SAMEBITS_C_API samebits_status samebits_convert(const samebits_view* in, const samebits_view* out,
                                                const samebits_convert_options* options,
                                                const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
