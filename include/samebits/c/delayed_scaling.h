/* Delayed scaling: the scale of a tensor is computed from the amaxes of earlier steps. */
#ifndef SAMEBITS_C_DELAYED_SCALING_H
#define SAMEBITS_C_DELAYED_SCALING_H

#include "samebits/c/base.h"
#include "samebits/c/scalar.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The amax of the history that determines the next scale. */
typedef int32_t samebits_history_choice;
enum { SAMEBITS_HISTORY_CHOICE_MAXIMUM = 0, SAMEBITS_HISTORY_CHOICE_MOST_RECENT = 1 };

/* Effect of samebits_delayed_update() if history[0] is 0, as after a tensor of zeros. */
typedef int32_t samebits_zero_step;
enum {
  SAMEBITS_ZERO_STEP_SKIP = 0, /* history and scales stay: Transformer Engine's fused update */
  SAMEBITS_ZERO_STEP_ROLL = 1  /* as for any other amax: Transformer Engine's unfused update */
};

/* Settings of delayed scaling. */
typedef struct samebits_delayed_settings {
  uint32_t struct_size;
  int32_t format;         /* format of the codes: e4m3 or e5m2 */
  int32_t margin;         /* in -64 .. 64: the scale leaves this many binades free */
  int32_t history_choice; /* samebits_history_choice */
  int32_t zero_step;      /* samebits_zero_step */
} samebits_delayed_settings;
#define SAMEBITS_DELAYED_SETTINGS_INIT \
  { (uint32_t)sizeof(samebits_delayed_settings), SAMEBITS_FORMAT_E4M3, 0, 0, 0 }
SAMEBITS_C_API samebits_status samebits_delayed_settings_init(samebits_delayed_settings* settings);

/* Scales of a tensor; both are 1 before the first update. */
typedef struct samebits_delayed_scale {
  float inverse_scale; /* S: for samebits_quantize_options.inverse_scales with tile {0, 0} */
  float scale;         /* the dequantization scale, 1 / S rounded */
} samebits_delayed_scale;
#define SAMEBITS_DELAYED_SCALE_INIT \
  { 1.0f, 1.0f }

/* Records an amax of this step: history[0] = max(history[0], amax). A NaN counts as larger than
 * every number.
 *
 * @param history  [count] amaxes in host memory
 * @param amax  as in samebits_quantize_statistics */
SAMEBITS_C_API samebits_status samebits_delayed_observe(float* history, size_t count, float amax);

/* Computes the scales for the next step, and advances the history by one step.
 *
 * @param state  the present scales; receives the next ones
 * @param history  [count] amaxes in host memory
 * @param settings  null: the defaults
 * @returns SAMEBITS_INVALID_ARGUMENT for a format that is neither e4m3 nor e5m2 */
SAMEBITS_C_API samebits_status samebits_delayed_update(samebits_delayed_scale* state,
                                                       float* history, size_t count,
                                                       const samebits_delayed_settings* settings);

#ifdef __cplusplus
}
#endif
#endif
