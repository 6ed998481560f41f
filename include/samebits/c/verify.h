/* Self-test and verification of backends on the user's own machine. */
#ifndef SAMEBITS_C_VERIFY_H
#define SAMEBITS_C_VERIFY_H

#include "samebits/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Result of one check of one backend. Texts are valid until the function that receives them
 * returns. */
typedef struct samebits_self_test_result {
  const char* backend;
  const char* check;  /* such as "flush_to_zero"; docs/backends.md lists them */
  const char* detail; /* of a failure: observation, meaning, remedy; else "" */
  int32_t passed;     /* 1: passed */
  int32_t reserved;   /* 0 */
} samebits_self_test_result;

typedef void (*samebits_self_test_function)(void* user, const samebits_self_test_result* result);

/* Runs the self-test of backends. Failed checks are results, not errors. Waits for the device.
 *
 * @param backend  the backend's name; null or "": every backend that can run here
 * @param each  receives each result; null: only *failed is written
 * @param user  passed to `each`
 * @param failed  receives the number of failed checks; may be null */
SAMEBITS_C_API samebits_status samebits_self_test(const char* backend,
                                                  samebits_self_test_function each, void* user,
                                                  int32_t* failed);

/* Runs the self-test and records that the backend has passed; for a device backend, on the current
 * device. Call it before capturing a CUDA graph.
 *
 * @param backend  the backend's name; null or "": every backend that can run here
 * @returns SAMEBITS_ENVIRONMENT_ERROR, with a message that names every failed check */
SAMEBITS_C_API samebits_status samebits_initialize(const char* backend);

/* Extent of samebits_verify(). */
typedef int32_t samebits_verify_extent;
enum {
  SAMEBITS_VERIFY_EXTENT_QUICK = 0,     /* some 10^9 results per backend; seconds */
  SAMEBITS_VERIFY_EXTENT_EXHAUSTIVE = 1 /* all 2^32 fp32 inputs of four formats by every rule */
};

/* Options of samebits_verify(). */
typedef struct samebits_verify_options {
  uint32_t struct_size;
  int32_t extent;      /* samebits_verify_extent */
  const char* backend; /* the only backend to compare; null or "": all but the reference */
  int32_t threads;     /* CPU threads, >= 1; 0: one per hardware thread */
  int32_t reserved;    /* 0 */
} samebits_verify_options;
#define SAMEBITS_VERIFY_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_verify_options), 0, NULL, 0, 0 }
SAMEBITS_C_API samebits_status samebits_verify_options_init(samebits_verify_options* options);

/* One comparison of one backend. Texts are valid until the function that receives them returns. */
typedef struct samebits_verification {
  const char* backend;
  const char* what;             /* such as "fp32 to e4m3, all 2^32 codes, 36 rules" */
  const char* first_difference; /* input, result, expected one and rule; "" if none differed */
  uint64_t compared;            /* number of results */
  uint64_t differed;            /* results that differ, plus 1 for writes outside a view */
} samebits_verification;

typedef void (*samebits_verify_function)(void* user, const samebits_verification* entry);

/* Compares backends with the reference bit for bit. Differences are results, not errors.
 *
 * @param options  null: the defaults
 * @param each  receives each comparison as soon as it is complete; may be null
 * @param user  passed to `each`
 * @param compared  receives the number of results of all comparisons; may be null
 * @param differed  receives the number of results that differ; may be null
 * @note Device backends run on the current device and need some 300 MB of its memory. */
SAMEBITS_C_API samebits_status samebits_verify(const samebits_verify_options* options,
                                               samebits_verify_function each, void* user,
                                               uint64_t* compared, uint64_t* differed);

#ifdef __cplusplus
}
#endif
#endif
