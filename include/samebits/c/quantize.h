/* Quantizes a matrix into 8-bit codes with one scale per tile, and dequantizes it. */
#ifndef SAMEBITS_C_QUANTIZE_H
#define SAMEBITS_C_QUANTIZE_H

#include <math.h> /* INFINITY, a constant expression */

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scale rule: the formulas from a tile's amax to its scale and from an element to its code.
 * include/samebits/core/scaling.hpp has the table. */
typedef int32_t samebits_scale_rule;
enum {
  SAMEBITS_SCALE_RULE_TE = 0,
  SAMEBITS_SCALE_RULE_DIV = 1,
  SAMEBITS_SCALE_RULE_RCP = 2,
  SAMEBITS_SCALE_RULE_POW2 = 3,
  SAMEBITS_SCALE_RULE_DG_CUDA = 4,
  SAMEBITS_SCALE_RULE_DG_TILE = 5,
  SAMEBITS_SCALE_RULE_SGL_V2 = 6,
  SAMEBITS_SCALE_RULE_TE_POW2 = 7,
  SAMEBITS_SCALE_RULE_MX_FLOOR = 8,
  SAMEBITS_SCALE_RULE_MX_CEIL = 9,
  SAMEBITS_SCALE_RULE_MX_EVEN = 10,
  SAMEBITS_SCALE_RULE_MX_RCEIL = 11
};

/* Treatment of NaN and Inf in a tile's amax. */
typedef int32_t samebits_nonfinite;
enum {
  SAMEBITS_NONFINITE_TE = 0,             /* NaN skipped; with an Inf the scale is 1 */
  SAMEBITS_NONFINITE_SKIP_NONFINITE = 1, /* NaN and Inf skipped */
  SAMEBITS_NONFINITE_PROPAGATE = 2,      /* the amax is NaN or Inf */
  SAMEBITS_NONFINITE_SKIP_NAN = 3        /* NaN skipped; with an Inf the amax is Inf */
};

/* Replacement of an inverse scale that overflows. */
typedef int32_t samebits_scale_overflow;
enum {
  SAMEBITS_SCALE_OVERFLOW_FLT_MAX = 0,
  SAMEBITS_SCALE_OVERFLOW_INPUT_MAX = 1 /* the largest finite value of the input's format */
};

/* The elements that share a scale: tiles of [rows, cols] elements; tiles at the edges are smaller.
 * 0 stands for the whole extent: {1, 0} is one scale per row, {0, 1} one per column, {0, 0} one per
 * tensor. All other shapes are 1 x G, G x 1 or G x G with G one of 16, 32, 64, 128, 256. */
typedef struct samebits_tile {
  int64_t rows;
  int64_t cols;
} samebits_tile;

/* Options of samebits_quantize(). */
typedef struct samebits_quantize_options {
  uint32_t struct_size;
  int32_t rule; /* samebits_scale_rule */
  samebits_tile tile;
  float eps;                     /* lower bound of the amax; finite, >= 0 */
  float upper_bound;             /* of the amax; > 0 */
  int32_t nonfinite;             /* samebits_nonfinite */
  int32_t rounding;              /* of the codes: nearest_even or stochastic */
  int32_t overflow;              /* samebits_overflow */
  int32_t nan_policy;            /* samebits_nan_policy */
  int32_t scale_overflow;        /* samebits_scale_overflow; read only by te and te_pow2 */
  int32_t reserved;              /* 0 */
  samebits_random_stream random; /* read only by stochastic rounding */
  /* Given inverse scales: one per tile, in fp32, in the memory of the views; rule, eps, upper_bound
   * and nonfinite are then ignored. Null: samebits_quantize() computes the scales. */
  const samebits_view* inverse_scales;
  /* Null, or a word in the memory of the views. If the word is not 0, nothing is written. */
  const uint32_t* skip_if_nonzero;
  /* Scratch memory that only this call uses until its work is done: samebits_quantize_workspace()
   * bytes or more, in the memory of the views, aligned to 16. Null: the stream's memory pool. */
  void* workspace;
  size_t workspace_bytes; /* 0 for a null workspace */
} samebits_quantize_options;
#define SAMEBITS_QUANTIZE_OPTIONS_INIT                                                             \
  {                                                                                                \
    (uint32_t)sizeof(samebits_quantize_options), SAMEBITS_SCALE_RULE_TE, {1, 128}, 0.0f, INFINITY, \
        SAMEBITS_NONFINITE_TE, SAMEBITS_ROUNDING_NEAREST_EVEN, SAMEBITS_OVERFLOW_SATURATE,         \
        SAMEBITS_NAN_POLICY_CANONICAL, SAMEBITS_SCALE_OVERFLOW_FLT_MAX, 0,                         \
        SAMEBITS_RANDOM_STREAM_INIT, NULL, NULL, NULL, 0                                           \
  }
SAMEBITS_C_API samebits_status samebits_quantize_options_init(samebits_quantize_options* options);

/* Statistics of a quantized matrix, computed in the same pass as the codes. */
typedef struct samebits_quantize_statistics {
  uint64_t elements;
  uint64_t zeros;       /* of either sign */
  uint64_t nan;         /* elements that are NaN */
  uint64_t inf;         /* elements that are infinite */
  uint64_t underflowed; /* finite, not zero, and became zero */
  uint64_t saturated;   /* finite; scaled and rounded, beyond the largest code */
  float amax;           /* max magnitude; NaN (7FFFFFFF) if any element is NaN */
  float min_nonzero;    /* min finite magnitude above zero; 0 if there is none */
  double signal;        /* sum of x^2; SNR = 10 * log10(signal / noise) dB */
  double noise;         /* sum of (x - x')^2, x' the dequantized element */
} samebits_quantize_statistics;

/* Outputs of samebits_quantize(), in the memory of the input. An output that is null, or a view
 * without data, is not written. */
typedef struct samebits_quantize_outputs {
  uint32_t struct_size;
  uint32_t reserved;           /* 0 */
  const samebits_view* codes;  /* [rows, cols] in e4m3 or e5m2 */
  const samebits_view* scales; /* samebits_scales_shape(), fp32 or e8m0: dequantization scales */
  const samebits_view* codes_transposed;    /* [cols, rows]: the transpose of the codes */
  const samebits_view* scales_transposed;   /* the transpose of the scales */
  samebits_quantize_statistics* statistics; /* in the memory of the views */
} samebits_quantize_outputs;
#define SAMEBITS_QUANTIZE_OUTPUTS_INIT \
  { (uint32_t)sizeof(samebits_quantize_outputs), 0, NULL, NULL, NULL, NULL, NULL }
SAMEBITS_C_API samebits_status samebits_quantize_outputs_init(samebits_quantize_outputs* outputs);

/* Writes the shape of the scales of a matrix [rows, cols]: one row and column per tile.
 *
 * @returns SAMEBITS_INVALID_ARGUMENT if a size is negative or the tile is not allowed. */
SAMEBITS_C_API samebits_status samebits_scales_shape(int64_t rows, int64_t cols,
                                                     const samebits_tile* tile, int64_t* scale_rows,
                                                     int64_t* scale_cols);

/* Quantizes a matrix tile by tile: options->rule gives each tile's scale from the tile's amax, and
 * each code is a scaled element rounded once.
 *
 * @param in  [rows, cols] in fp32, fp16 or bf16, host or device memory; any size, 0 included
 * @param outputs  codes, scales and statistics to write
 * @param options  null: the defaults
 * @param where  null: one thread, default backend and stream
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT, before anything is written, for a view, tile, option or workspace
 *     that is not allowed, or if neither codes nor transposed codes are requested. Statistics
 *     alone are allowed in host memory: `codes` then has a format and no data;
 *   - SAMEBITS_UNSUPPORTED if this machine lacks the backend, or the backend cannot quantize;
 *   - SAMEBITS_ENVIRONMENT_ERROR in a process or on a GPU that does not compute in IEEE 754 steps;
 *   - SAMEBITS_CUDA_ERROR.
 * @note Thread-safe. Device views: the call is enqueued on where->stream and returns. It can be
 *   captured into a CUDA graph. */
SAMEBITS_C_API samebits_status samebits_quantize(const samebits_view* in,
                                                 const samebits_quantize_outputs* outputs,
                                                 const samebits_quantize_options* options,
                                                 const samebits_executor* where);

/* Writes the bytes of workspace that samebits_quantize() needs for these arguments; 0 on the host.
 * The arguments are checked in the same way. */
SAMEBITS_C_API samebits_status samebits_quantize_workspace(const samebits_view* in,
                                                           const samebits_quantize_outputs* outputs,
                                                           const samebits_quantize_options* options,
                                                           size_t* bytes,
                                                           const samebits_executor* where);

/* Dequantizes codes: each element is value * scale rounded to binary32, then rounded into the
 * format of `out`, to nearest even with overflow ieee.
 *
 * @param codes  [rows, cols] in e4m3 or e5m2
 * @param scales  dequantization scales, samebits_scales_shape(), in fp32 or e8m0
 * @param out  [rows, cols] in fp32, fp16 or bf16
 * @param tile  the tile of samebits_quantize(); for transposed outputs its transpose
 * @returns the errors of samebits_quantize() */
SAMEBITS_C_API samebits_status samebits_dequantize(const samebits_view* codes,
                                                   const samebits_view* scales,
                                                   const samebits_view* out,
                                                   const samebits_tile* tile,
                                                   const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
