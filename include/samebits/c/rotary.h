/* Tables of rotary position embeddings: cos and sin, correctly rounded. */
#ifndef SAMEBITS_C_ROTARY_H
#define SAMEBITS_C_ROTARY_H

#include "samebits/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which angle a rotary table has cos and sin of. */
typedef int32_t samebits_rotary_angle;
enum {
  SAMEBITS_ROTARY_ANGLE_EXACT = 0,   /* position times frequency, as real numbers */
  SAMEBITS_ROTARY_ANGLE_BINARY32 = 1 /* position, frequency and product rounded to binary32 */
};

/* Options of samebits_rotary_table(). */
typedef struct samebits_rotary_options {
  uint32_t struct_size;
  int32_t angle; /* samebits_rotary_angle; default: exact */
  double base;   /* column i has the frequency base^(-i / columns); at least 1; default: 10000 */
  const double* frequencies; /* [frequency_count], radians per position; null: by `base` */
  size_t frequency_count;    /* the number of columns; 0 for null `frequencies` */
} samebits_rotary_options;
#define SAMEBITS_ROTARY_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_rotary_options), 0, 10000.0, NULL, 0 }
SAMEBITS_C_API samebits_status samebits_rotary_options_init(samebits_rotary_options* options);

/* Computes cos(position * frequency) and sin(position * frequency) for every position and column:
 * the exact cos and sin of the angle, rounded once to nearest even.
 *
 * @param positions  [position_count], one per row, of any sign
 * @param cos  [position_count, columns] in fp32, fp16 or bf16, host memory
 * @param sin  the shape and format of `cos`; shares no memory with `cos`
 * @param options  null: the defaults
 * @param where  null: one thread
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT, before anything is written, for formats, shapes, counts, memory, a
 *     base or a frequency that is not allowed;
 *   - SAMEBITS_UNSUPPORTED for device memory.
 * @note Thread-safe. */
SAMEBITS_C_API samebits_status samebits_rotary_table(const int64_t* positions,
                                                     size_t position_count,
                                                     const samebits_view* cos,
                                                     const samebits_view* sin,
                                                     const samebits_rotary_options* options,
                                                     const samebits_executor* where);

#ifdef __cplusplus
}
#endif

#endif
