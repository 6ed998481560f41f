/* Loss scaler: training code calls it between the backward pass and the optimizer. */
#ifndef SAMEBITS_C_LOSS_SCALER_H
#define SAMEBITS_C_LOSS_SCALER_H

#include "samebits/c/base.h"
#include "samebits/c/tensor_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loss scaling policy. */
typedef int32_t samebits_scaling_policy;
enum {
  SAMEBITS_SCALING_POLICY_NATIVE = 0,   /* samebits */
  SAMEBITS_SCALING_POLICY_TORCH = 1,    /* torch.amp.GradScaler */
  SAMEBITS_SCALING_POLICY_APEX = 2,     /* Apex and Transformer Engine, update_scale_hysteresis */
  SAMEBITS_SCALING_POLICY_APEX_AMP = 3, /* apex.amp LossScaler */
  SAMEBITS_SCALING_POLICY_MEGATRON = 4, /* Megatron-Core DynamicGradScaler */
  SAMEBITS_SCALING_POLICY_DEEPSPEED = 5 /* DeepSpeed DynamicLossScaler */
};

/* Cause of a skipped step. */
typedef int32_t samebits_step_cause;
enum {
  SAMEBITS_STEP_CAUSE_NONE = 0,        /* the step was applied */
  SAMEBITS_STEP_CAUSE_NONFINITE = 1,   /* a scaled gradient was Inf or NaN, unknown which */
  SAMEBITS_STEP_CAUSE_OVERFLOW = 2,    /* the max magnitude of the scaled gradients was Inf */
  SAMEBITS_STEP_CAUSE_NAN = 3,         /* a scaled gradient was NaN */
  SAMEBITS_STEP_CAUSE_LOSS = 4,        /* gradients, and the loss before scaling: Inf or NaN */
  SAMEBITS_STEP_CAUSE_UNSCALED = 5,    /* native: finite gradients that overflow when unscaled */
  SAMEBITS_STEP_CAUSE_RANKS_DIFFER = 6 /* the ranks' scalers differed */
};

/* Effect of the update on the scale. */
typedef int32_t samebits_scale_change;
enum {
  SAMEBITS_SCALE_CHANGE_KEPT = 0,
  SAMEBITS_SCALE_CHANGE_GROWN = 1,
  SAMEBITS_SCALE_CHANGE_BACKED_OFF = 2,
  SAMEBITS_SCALE_CHANGE_AT_MINIMUM = 3 /* not backed off: already at the lower bound */
};

/* A setting of a policy by name and value, such as {"growth_interval", "1000"}.
 * docs/loss_scaling.md lists the names. The value is a number, true, false, or the name of an
 * enumerator. */
typedef struct samebits_setting {
  const char* name;
  const char* value;
} samebits_setting;

/* Value of an amax that was not measured. */
#define SAMEBITS_AMAX_UNKNOWN 0xFFFFFFFFu

/* Observation of the scaled gradients of one step, before unscaling. */
typedef struct samebits_step_observation {
  uint32_t struct_size;
  int32_t nonfinite;          /* 1: a scaled gradient is Inf or NaN */
  int32_t loss_nonfinite;     /* 1: the loss was Inf or NaN before scaling */
  int32_t unscaled_nonfinite; /* 1: unscaling made a finite gradient Inf */
  uint32_t amax_bits;         /* max magnitude as binary32 bits, Inf and NaN included */
} samebits_step_observation;
#define SAMEBITS_STEP_OBSERVATION_INIT \
  { (uint32_t)sizeof(samebits_step_observation), 0, 0, 0, SAMEBITS_AMAX_UNKNOWN }
SAMEBITS_C_API samebits_status
samebits_step_observation_init(samebits_step_observation* observation);

/* Decision of a policy on one step. */
typedef struct samebits_step_decision {
  int32_t apply;  /* 1: the optimizer may step */
  int32_t cause;  /* samebits_step_cause */
  int32_t change; /* samebits_scale_change */
  int32_t stop;   /* 1: the policy ends the run */
} samebits_step_decision;

/* A loss scale that adapts to the gradients. Between two updates, each optimizer calls unscale or
 * observe, then step; any other order is SAMEBITS_CALL_ORDER_ERROR. Not thread-safe; distinct
 * scalers are independent. `optimizer` is the optimizer's name; null or "" is the unnamed one. */
typedef struct samebits_loss_scaler samebits_loss_scaler;

/* Creates a scaler with the policy's initial state.
 *
 * @param policy  samebits_scaling_policy
 * @param settings  [count] settings that differ from the policy's defaults
 * @param scaler  receives the scaler; the caller destroys it
 * @returns SAMEBITS_INVALID_ARGUMENT, naming the setting, for a name or value that is not
 *   allowed */
SAMEBITS_C_API samebits_status samebits_loss_scaler_create(int32_t policy,
                                                           const samebits_setting* settings,
                                                           size_t count,
                                                           samebits_loss_scaler** scaler);
/* Creates a scaler from the text of samebits_loss_scaler_save(). The scaler continues with the bits
 * of an uninterrupted run.
 *
 * @returns SAMEBITS_INVALID_ARGUMENT, with the line, for any other text */
SAMEBITS_C_API samebits_status samebits_loss_scaler_load(const char* text,
                                                         samebits_loss_scaler** scaler);
/* Destroys a scaler. Null is allowed. */
SAMEBITS_C_API void samebits_loss_scaler_destroy(samebits_loss_scaler* scaler);

/* Writes loss * scale, rounded to binary32. A loss that is not finite is remembered until the
 * update. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_scale(samebits_loss_scaler* scaler, float loss,
                                                          float* scaled);
/* Unscales gradients in place, and records whether the optimizer may step.
 *
 * After SAMEBITS_INCOMPLETE_WRITE or SAMEBITS_CUDA_ERROR some gradients may be unscaled: call
 * samebits_loss_scaler_discard() and compute the gradients again.
 *
 * @param report  may be null
 * @param where  null: one thread, default backend and stream
 * @note Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_unscale(samebits_loss_scaler* scaler,
                                                            const samebits_tensor_list* gradients,
                                                            const char* optimizer,
                                                            samebits_unscale_report* report,
                                                            const samebits_executor* where);
/* Tells the scaler that the optimizer's gradients were thrown away after a failed unscale. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_discard(samebits_loss_scaler* scaler,
                                                            const char* optimizer);
/* Records an observation of the gradients, for callers who unscale themselves. */
SAMEBITS_C_API samebits_status
samebits_loss_scaler_observe(samebits_loss_scaler* scaler,
                             const samebits_step_observation* observation, const char* optimizer);

/* Runs the optimizer. Returns 0, or another value if the optimizer failed. */
typedef int32_t (*samebits_step_function)(void* user);

/* Calls run(user), unless this optimizer's gradients were not finite.
 *
 * @param run  the optimizer; null: the caller runs the optimizer itself if *applied is 1
 * @param applied  receives 1 if the step is applied, 0 if it is skipped; may be null
 * @returns SAMEBITS_CALLBACK_FAILED if run() does not return 0; the call may then be repeated */
SAMEBITS_C_API samebits_status samebits_loss_scaler_step(samebits_loss_scaler* scaler,
                                                         const char* optimizer,
                                                         samebits_step_function run, void* user,
                                                         int32_t* applied);
/* Ends the iteration: the policy sets the next scale from the observations of all optimizers.
 *
 * @param decision  may be null
 * @returns SAMEBITS_SCALE_EXHAUSTED if the policy ends the run; the scaler is nevertheless ready
 *   for the next iteration, and `decision` is not written */
SAMEBITS_C_API samebits_status samebits_loss_scaler_update(samebits_loss_scaler* scaler,
                                                           samebits_step_decision* decision);

/* Writes the policy (samebits_scaling_policy). */
SAMEBITS_C_API samebits_status samebits_loss_scaler_policy(const samebits_loss_scaler* scaler,
                                                           int32_t* policy);
/* Writes the current scale. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_get_scale(const samebits_loss_scaler* scaler,
                                                              double* scale);
/* Writes 1 / scale, rounded to binary32. */
SAMEBITS_C_API samebits_status
samebits_loss_scaler_inverse_scale(const samebits_loss_scaler* scaler, float* inverse_scale);
/* Writes the number of updates so far. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_updates(const samebits_loss_scaler* scaler,
                                                            uint64_t* updates);
/* Writes the number of applied steps of an optimizer. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_applied_steps(
    const samebits_loss_scaler* scaler, const char* optimizer, uint64_t* steps);

/* Writes settings, state and counts as text for a checkpoint. scalar.h says how text is returned.
 *
 * @returns SAMEBITS_CALL_ORDER_ERROR if no update has followed the last unscale, the last observe,
 *   or the last loss that was not finite */
SAMEBITS_C_API samebits_status samebits_loss_scaler_save(const samebits_loss_scaler* scaler,
                                                         char* buffer, size_t size, size_t* length);
/* Writes policy, settings and present state as text, at any time: the line "loss_scaler", policy
 * and settings as lines "name value", the line "state", and the numbers of the state as lines
 * "name value". samebits_loss_scaler_load() does not read this text. */
SAMEBITS_C_API samebits_status samebits_loss_scaler_describe(const samebits_loss_scaler* scaler,
                                                             char* buffer, size_t size,
                                                             size_t* length);

/* A number of another library's state_dict, with the library's key. */
typedef struct samebits_state_entry {
  char key[56]; /* ends with a null byte */
  double value;
} samebits_state_entry;

/* Continues from another library's state_dict. Entries that are settings replace this scaler's
 * settings. docs/loss_scaling.md lists the keys.
 *
 * @param from  policy of the library; this scaler's policy is `from` or native
 * @returns SAMEBITS_INVALID_ARGUMENT, naming the key, if a key is missing, unknown or out of
 *   range */
SAMEBITS_C_API samebits_status samebits_loss_scaler_import_state(
    samebits_loss_scaler* scaler, int32_t from, const samebits_state_entry* entries, size_t count);
/* Writes the state as a state_dict of another library.
 *
 * @param to  this scaler's own policy; a native scaler exports to torch, apex, megatron, deepspeed
 * @param entries  [capacity]; null: only *count is written
 * @param count  receives the number of entries
 * @returns SAMEBITS_INVALID_ARGUMENT for another policy, or if capacity is too small */
SAMEBITS_C_API samebits_status samebits_loss_scaler_export_state(const samebits_loss_scaler* scaler,
                                                                 int32_t to,
                                                                 samebits_state_entry* entries,
                                                                 size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif
#endif
