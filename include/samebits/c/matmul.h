/* Matrix products with an exactly specified accumulation, including those of tensor cores. */
#ifndef SAMEBITS_C_MATMUL_H
#define SAMEBITS_C_MATMUL_H

#include "samebits/c/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of accumulation; include/samebits/core/accumulator.hpp defines each kind. */
typedef int32_t samebits_accumulator_kind;
enum {
  SAMEBITS_ACCUMULATOR_KIND_EXACT = 0,        /* the exact dot product, rounded once */
  SAMEBITS_ACCUMULATOR_KIND_IEEE_FP32 = 1,    /* binary32 operations in the order of fp32_order */
  SAMEBITS_ACCUMULATOR_KIND_FP32_PER_128 = 2, /* exact for each 128 of K, then binary32 sums */
  SAMEBITS_ACCUMULATOR_KIND_TENSOR_CORE = 3   /* a chain of tensor core instructions */
};

/* Order of the sums of ieee_fp32. */
typedef int32_t samebits_fp32_order;
enum {
  SAMEBITS_FP32_ORDER_ASCENDING = 0,
  SAMEBITS_FP32_ORDER_ASCENDING_FUSED = 1,
  SAMEBITS_FP32_ORDER_TREE = 2
};

/* Order in which scales are applied. */
typedef int32_t samebits_scale_order;
enum {
  SAMEBITS_SCALE_ORDER_AS_CUBLASLT = -1, /* the order of cuBLASLt for the tiles of A and B */
  SAMEBITS_SCALE_ORDER_PRODUCT_FUSED = 0,
  SAMEBITS_SCALE_ORDER_PRODUCT = 1,
  SAMEBITS_SCALE_ORDER_A_THEN_B = 2,
  SAMEBITS_SCALE_ORDER_B_THEN_A = 3,
  SAMEBITS_SCALE_ORDER_A_THEN_B_FUSED = 4,
  SAMEBITS_SCALE_ORDER_B_THEN_A_FUSED = 5
};

/* Step at which C is added. */
typedef int32_t samebits_addend;
enum {
  SAMEBITS_ADDEND_LAST = 0, /* after the scales: beta = 1 of a BLAS */
  SAMEBITS_ADDEND_FIRST = 1 /* the sum starts from C */
};

/* A family of tensor core instructions of one GPU architecture. */
typedef int32_t samebits_tensor_unit;
enum {
  SAMEBITS_TENSOR_UNIT_VOLTA_MMA = 0,
  SAMEBITS_TENSOR_UNIT_TURING_MMA = 1,
  SAMEBITS_TENSOR_UNIT_AMPERE_MMA = 2,
  SAMEBITS_TENSOR_UNIT_ADA_MMA = 3,
  SAMEBITS_TENSOR_UNIT_HOPPER_MMA_SYNC = 4,
  SAMEBITS_TENSOR_UNIT_HOPPER_WGMMA = 5,
  SAMEBITS_TENSOR_UNIT_BLACKWELL_MMA_SYNC = 6,
  SAMEBITS_TENSOR_UNIT_BLACKWELL_TCGEN05 = 7,
  SAMEBITS_TENSOR_UNIT_BLACKWELL_RTX_MMA = 8
};

/* Evidence that a tensor core computes like its model. */
typedef int32_t samebits_evidence;
enum {
  SAMEBITS_EVIDENCE_NONE = 0,       /* the unit has no such instruction */
  SAMEBITS_EVIDENCE_LITERATURE = 1, /* stated by others */
  SAMEBITS_EVIDENCE_PUBLISHED = 2,  /* reproduces results of GPUs published by others */
  SAMEBITS_EVIDENCE_HARDWARE = 3    /* reproduces results that samebits measured on a GPU */
};

/* One way to accumulate. The default is exact. */
typedef struct samebits_accumulator {
  uint32_t struct_size;
  int32_t kind;      /* samebits_accumulator_kind */
  int32_t order;     /* samebits_fp32_order; only for ieee_fp32 */
  int32_t unit;      /* samebits_tensor_unit; only for tensor_core, as all fields below */
  int64_t promotion; /* elements of K between promotions into binary32; 0: none */
  int32_t result;    /* format of the unit's sums: fp32 or fp16 */
  int32_t products;  /* products per instruction; 0: the widest instruction */
} samebits_accumulator;
#define SAMEBITS_ACCUMULATOR_INIT                                                                  \
  {                                                                                                \
    (uint32_t)sizeof(samebits_accumulator), SAMEBITS_ACCUMULATOR_KIND_EXACT,                       \
        SAMEBITS_FP32_ORDER_ASCENDING, SAMEBITS_TENSOR_UNIT_HOPPER_WGMMA, 0, SAMEBITS_FORMAT_FP32, \
        0                                                                                          \
  }
SAMEBITS_C_API samebits_status samebits_accumulator_init(samebits_accumulator* accumulator);

/* Options of samebits_matmul(): dequantization scales, their order, and C. */
typedef struct samebits_matmul_options {
  uint32_t struct_size;
  int32_t order;                 /* samebits_scale_order */
  const samebits_view* a_scales; /* one per tile of A, in fp32 or e8m0; null: 1 everywhere */
  samebits_tile a_tile;          /* {0, 0}, {1, 0}, {1, 128} or {128, 128} */
  const samebits_view* b_scales; /* one per tile of B, in fp32 or e8m0; null: 1 everywhere */
  samebits_tile b_tile;          /* {0, 0}, {0, 1}, {128, 1} or {128, 128} */
  const samebits_view* c;        /* [M, N] in fp32, fp16 or bf16; null: none */
  int32_t c_enters;              /* samebits_addend */
  int32_t reserved;              /* 0 */
} samebits_matmul_options;
#define SAMEBITS_MATMUL_OPTIONS_INIT                                                           \
  {                                                                                            \
    (uint32_t)sizeof(samebits_matmul_options), SAMEBITS_SCALE_ORDER_AS_CUBLASLT, NULL, {0, 0}, \
        NULL, {0, 0}, NULL, SAMEBITS_ADDEND_LAST, 0                                            \
  }
SAMEBITS_C_API samebits_status samebits_matmul_options_init(samebits_matmul_options* options);

/* Computes d [M, N] = a [M, K] * b [K, N] + c, with each operand dequantized by its scales.
 *
 * @param a  [M, K], any format except fp64 and e8m0; for tensor_core a format that the unit
 *   multiplies
 * @param b  [K, N]; weights [N, K] are passed with rows, cols and strides exchanged
 * @param d  [M, N] in fp32, fp16 or bf16; for exact also fp64. Overlaps no other view.
 * @param accumulator  null: exact
 * @param options  null: the defaults
 * @param where  null: one thread, default backend
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT, before anything is written, for a view, accumulator or option that
 *     is not allowed;
 *   - SAMEBITS_UNSUPPORTED if the tensor unit does not multiply the formats.
 * @note Host memory only. Thread-safe. */
SAMEBITS_C_API samebits_status samebits_matmul(const samebits_view* a, const samebits_view* b,
                                               const samebits_view* d,
                                               const samebits_accumulator* accumulator,
                                               const samebits_matmul_options* options,
                                               const samebits_executor* where);

/* Writes the evidence (samebits_evidence) that a tensor core computes like this accumulator on
 * operands in the formats a and b. */
SAMEBITS_C_API samebits_status samebits_evidence_of(const samebits_accumulator* accumulator,
                                                    int32_t a, int32_t b, int32_t* evidence);

/* Errors of a matrix of results against the exact matrix, in binary64. */
typedef struct samebits_product_error {
  uint64_t count;            /* elements */
  uint64_t nonfinite;        /* result or exact value not finite; excluded below */
  uint64_t unequal;          /* results that differ from the exact value */
  double mean;               /* of |error| */
  double max;                /* of |error| */
  double signal;             /* sum of exact^2 */
  double noise;              /* sum of error^2 */
  double rounding_noise;     /* the part of the noise that the format of the results explains */
  double accumulation_noise; /* the noise of the accumulation */
  uint64_t octaves[32];      /* [i] counts 2^-(i+1) <= |error| / |exact| < 2^-i */
} samebits_product_error;

/* Writes the errors of results against exact values.
 *
 * @param results  [M, N] in fp32, fp16 or bf16
 * @param exact  [M, N] in fp64, from samebits_matmul() with the accumulator exact */
SAMEBITS_C_API samebits_status samebits_product_error_of(const samebits_view* results,
                                                         const samebits_view* exact,
                                                         samebits_product_error* error);

/* Computes samebits_matmul() with an accumulator of kind tensor_core, and compares d with the exact
 * product.
 *
 * @param evidence  receives samebits_evidence; may be null
 * @param error  receives the error of d; may be null */
SAMEBITS_C_API samebits_status samebits_predict(const samebits_view* a, const samebits_view* b,
                                                const samebits_view* d,
                                                const samebits_accumulator* accumulator,
                                                const samebits_matmul_options* options,
                                                int32_t* evidence, samebits_product_error* error,
                                                const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
