/* Recipes: the quantization rules of other libraries as data, and a table of named presets. */
#ifndef SAMEBITS_C_RECIPE_H
#define SAMEBITS_C_RECIPE_H

#include "samebits/c/quantize.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Source of the scales. */
typedef int32_t samebits_scale_source;
enum {
  SAMEBITS_SCALE_SOURCE_CURRENT = 0, /* the amax of the tensor itself */
  SAMEBITS_SCALE_SOURCE_DELAYED = 1  /* a state computed from earlier tensors (delayed_scaling.h) */
};

/* Evidence that a preset has the bits of its library. */
typedef int32_t samebits_recipe_evidence;
enum {
  SAMEBITS_RECIPE_EVIDENCE_UNVERIFIED = 0,    /* formulas read in the library's source */
  SAMEBITS_RECIPE_EVIDENCE_LIBRARY_OUTPUT = 1 /* checked against the library's own output */
};

/* Everything besides the input that determines codes and scales. */
typedef struct samebits_recipe {
  samebits_tile tile; /* of row-wise outputs; exchange rows and cols for column-wise outputs */
  int32_t rule;       /* samebits_scale_rule */
  float eps;
  float upper_bound;
  int32_t nonfinite;      /* samebits_nonfinite */
  int32_t scale_overflow; /* samebits_scale_overflow */
  int32_t overflow;       /* samebits_overflow */
  int32_t scale_format;   /* fp32 or e8m0 */
  int32_t source;         /* samebits_scale_source */
} samebits_recipe;

/* A named recipe. The texts are valid as long as the library is loaded. */
typedef struct samebits_recipe_preset {
  const char* name;
  const char* reproduces; /* which calls of the library */
  const char* version;    /* version of the library's source */
  const char* exceptions; /* cases in which equal bits are not claimed */
  samebits_recipe rules;
  int32_t verified;           /* samebits_recipe_evidence for finite elements */
  int32_t verified_nonfinite; /* samebits_recipe_evidence for tiles with NaN or Inf */
} samebits_recipe_preset;

/* Returns the number of presets. */
SAMEBITS_C_API int32_t samebits_recipe_count(void);
/* Writes the preset at a position, 0 <= position < samebits_recipe_count().
 *
 * @returns SAMEBITS_INVALID_ARGUMENT for every other position. */
SAMEBITS_C_API samebits_status samebits_recipe_at(int32_t position, samebits_recipe_preset* preset);
/* Writes the preset with a name, such as "DEEPGEMM_FP32_CUDA".
 *
 * @returns SAMEBITS_INVALID_ARGUMENT, with a message that lists the names, if there is none. */
SAMEBITS_C_API samebits_status samebits_find_recipe(const char* name,
                                                    samebits_recipe_preset* preset);

/* Writes a recipe into the options of samebits_quantize(). Other fields get their defaults. For a
 * delayed recipe the caller also sets options->inverse_scales.
 *
 * @param options  struct_size is set by the caller */
SAMEBITS_C_API samebits_status samebits_recipe_options(const samebits_recipe* recipe,
                                                       samebits_quantize_options* options);

/* Quantizes a matrix by a recipe, with scales computed from the matrix itself.
 *
 * @returns SAMEBITS_INVALID_ARGUMENT if the recipe is delayed or the scales are not in its format;
 *   the errors of samebits_quantize() */
SAMEBITS_C_API samebits_status samebits_quantize_by_recipe(const samebits_view* in,
                                                           const samebits_quantize_outputs* outputs,
                                                           const samebits_recipe* recipe,
                                                           const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
