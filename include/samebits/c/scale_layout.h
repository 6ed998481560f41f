/* Scale layouts: the memory order of scales that the matrix products of other libraries expect. */
#ifndef SAMEBITS_C_SCALE_LAYOUT_H
#define SAMEBITS_C_SCALE_LAYOUT_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Layouts; include/samebits/scale_layout.hpp has the table of their order and users. */
typedef int32_t samebits_scale_layout;
enum {
  SAMEBITS_SCALE_LAYOUT_ROW_MAJOR = 0,
  SAMEBITS_SCALE_LAYOUT_COLUMN_MAJOR = 1,
  SAMEBITS_SCALE_LAYOUT_ROW_PADDED = 2,
  SAMEBITS_SCALE_LAYOUT_PACKED_UE8M0 = 3,
  SAMEBITS_SCALE_LAYOUT_PADDED_128X4 = 4,
  SAMEBITS_SCALE_LAYOUT_PADDED_4X128 = 5,
  SAMEBITS_SCALE_LAYOUT_SWIZZLED_128X4 = 6
};

/* Value of the padding: 0 (byte 00) or 1 (byte 7F). */
typedef int32_t samebits_scale_padding;
enum { SAMEBITS_SCALE_PADDING_ZERO = 0, SAMEBITS_SCALE_PADDING_ONE = 1 };

/* Treatment of a scale that a byte cannot hold. */
typedef int32_t samebits_unpackable;
enum {
  SAMEBITS_UNPACKABLE_REFUSE = 0, /* SAMEBITS_INVALID_ARGUMENT; nothing is written */
  SAMEBITS_UNPACKABLE_COUNT = 1   /* write byte FF, which is NaN, and count the scale */
};

/* Options of samebits_arrange_scales() and samebits_restore_scales(). */
typedef struct samebits_scale_layout_options {
  uint32_t struct_size;
  int32_t padding;    /* samebits_scale_padding */
  int32_t unpackable; /* samebits_unpackable */
} samebits_scale_layout_options;
#define SAMEBITS_SCALE_LAYOUT_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_scale_layout_options), 0, 0 }
SAMEBITS_C_API samebits_status
samebits_scale_layout_options_init(samebits_scale_layout_options* options);

/* Report of samebits_arrange_scales() and samebits_restore_scales(). */
typedef struct samebits_scale_layout_report {
  uint64_t scales;     /* without the padding */
  uint64_t unpackable; /* scales that a byte cannot hold */
  int64_t first_row;   /* row of the first unpackable scale in row-major order, or -1 */
  int64_t first_col;   /* column of this scale, or -1 */
} samebits_scale_layout_report;

/* Writes the bytes of a matrix of scales [rows, cols] in a layout, padding included.
 *
 * @param layout  samebits_scale_layout
 * @param format  receives fp32, or e8m0 for layouts of bytes; may be null
 * @returns SAMEBITS_INVALID_ARGUMENT for an unknown layout or a negative size */
SAMEBITS_C_API samebits_status samebits_layout_bytes(int32_t layout, int64_t rows, int64_t cols,
                                                     int64_t* bytes, int32_t* format);

/* Writes scales and padding in a layout.
 *
 * @param scales  [rows, cols] in fp32 or e8m0, host memory, any strides
 * @param layout  samebits_scale_layout
 * @param out  samebits_layout_bytes() bytes of host memory
 * @param out_bytes  size of `out`
 * @param options  null: the defaults
 * @param report  may be null */
SAMEBITS_C_API samebits_status samebits_arrange_scales(const samebits_view* scales, int32_t layout,
                                                       void* out, size_t out_bytes,
                                                       const samebits_scale_layout_options* options,
                                                       samebits_scale_layout_report* report);
/* Reads scales from a layout; the inverse of samebits_arrange_scales(). The padding is not read. */
SAMEBITS_C_API samebits_status samebits_restore_scales(const void* in, size_t in_bytes,
                                                       int32_t layout, const samebits_view* scales,
                                                       const samebits_scale_layout_options* options,
                                                       samebits_scale_layout_report* report);

#ifdef __cplusplus
}
#endif
#endif
