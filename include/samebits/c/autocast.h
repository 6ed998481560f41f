/* Autocast: the precision in which each operation runs when training in FP16, BF16 or FP8. */
#ifndef SAMEBITS_C_AUTOCAST_H
#define SAMEBITS_C_AUTOCAST_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What autocast does with the floating-point operands of an operation. */
typedef int32_t samebits_autocast_rule;
enum {
  SAMEBITS_AUTOCAST_RULE_LOW_PRECISION = 0, /* cast to the low-precision format */
  SAMEBITS_AUTOCAST_RULE_FP32 = 1,          /* cast to FP32 */
  SAMEBITS_AUTOCAST_RULE_FP32_RESULT = 2,   /* not cast; computed and returned in FP32 */
  SAMEBITS_AUTOCAST_RULE_WIDEST = 3,        /* cast to the widest format among the operands */
  SAMEBITS_AUTOCAST_RULE_AS_GIVEN = 4,      /* not cast: every operation that no list names */
  SAMEBITS_AUTOCAST_RULE_BANNED = 5         /* refused: unsafe in low precision */
};

/* Precision of a training run. */
typedef int32_t samebits_training_precision;
enum {
  SAMEBITS_TRAINING_PRECISION_MIXED_FP16 = 0,
  SAMEBITS_TRAINING_PRECISION_MIXED_BF16 = 1,
  SAMEBITS_TRAINING_PRECISION_MIXED_FP8 = 2
};

/* Writes the samebits_autocast_rule of an operation in PyTorch.
 *
 * @param operation  ATen's name, such as "matmul" */
SAMEBITS_C_API samebits_status samebits_autocast_rule_of(const char* operation, int32_t* rule);
/* Writes the samebits_autocast_rule of an operation in Apex, level O1. */
SAMEBITS_C_API samebits_status samebits_apex_rule_of(const char* operation, int32_t* rule);

/* Formats of one operation; each is a samebits_format, or -1 for a banned operation. */
typedef struct samebits_operation_formats {
  int32_t operands;  /* operands are cast to this format */
  int32_t gradients; /* format of the incoming gradient in the backward products */
  int32_t result;    /* format of the result */
} samebits_operation_formats;

/* Writes the formats of an operation by PyTorch's rule.
 *
 * @param precision  samebits_training_precision
 * @param widest  the widest format of the operands: fp64, fp32, fp16 or bf16 */
SAMEBITS_C_API samebits_status samebits_operation_formats_of(const char* operation,
                                                             int32_t precision, int32_t widest,
                                                             samebits_operation_formats* formats);

#ifdef __cplusplus
}
#endif
#endif
