/* Device loss scaler: scale, decision and report of every step stay on the GPU. */
#ifndef SAMEBITS_C_DEVICE_LOSS_SCALER_H
#define SAMEBITS_C_DEVICE_LOSS_SCALER_H

#include <math.h> /* INFINITY, a constant expression */

#include "samebits/c/base.h"
#include "samebits/c/loss_scaler.h"
#include "samebits/c/ranks.h"
#include "samebits/c/tensor_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Report of one decided step: plain data in any memory. */
typedef struct samebits_step_report {
  uint64_t step;          /* steps decided before this one */
  uint64_t applied_steps; /* steps applied so far, this step included */
  double scale;           /* scale during the step, before its update */
  double norm;            /* of the unscaled gradients; NaN if not computed */
  int64_t first_bad;      /* position of the first bad tensor; -1: none */
  int64_t bad_rank;       /* first rank with a bad loss or gradient; -1: none */
  float grad_mul;         /* 1 / scale, times the clip factor; 0 if the step is skipped */
  uint32_t amax_bits;     /* of the scaled gradients, as binary32 bits */
  int32_t exponent;       /* floor(log2(scale)) */
  uint8_t applied;        /* 1: the step is applied */
  uint8_t stop;           /* 1: the policy ends the run */
  uint8_t cause;          /* samebits_step_cause */
  uint8_t change;         /* samebits_scale_change */
} samebits_step_report;

/* Options of a device loss scaler. */
typedef struct samebits_device_scaler_options {
  uint32_t struct_size;
  uint32_t reports; /* number of reports kept for the host before the oldest is overwritten; >= 1 */
  double max_norm;  /* maximum norm of all unscaled gradients; >= 0; infinite: no clipping */
  const char* backend; /* name of the CUDA backend; null or "": the default */
  /* Layout of gradients that are spread over ranks. Null: this rank holds whole gradients. */
  const samebits_shard_layout* shards;
} samebits_device_scaler_options;
#define SAMEBITS_DEVICE_SCALER_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_device_scaler_options), 256, INFINITY, NULL, NULL }
SAMEBITS_C_API samebits_status
samebits_device_scaler_options_init(samebits_device_scaler_options* options);

/* A loss scaler in device memory, for one list of gradients. The scaler keeps the description of
 * the list, so the handle of the list may be destroyed; the tensors must stay where they are.
 *
 * `stream` is a cudaStream_t. Functions with the parameter `stream` enqueue their work and return,
 * unless their comment says that they wait. Functions that do not wait can be captured into a CUDA
 * graph; the scaler must outlive the graph.
 *
 * In a library without CUDA every function returns SAMEBITS_UNSUPPORTED. */
typedef struct samebits_device_loss_scaler samebits_device_loss_scaler;

/* Creates a scaler with the policy's initial state.
 *
 * @param gradients  tensors in fp32, fp16 and bf16, device memory
 * @param policy  samebits_scaling_policy
 * @param settings  [count] settings that differ from the policy's defaults
 * @param options  null: the defaults
 * @param scaler  receives the scaler; the caller destroys it
 * @returns SAMEBITS_INVALID_ARGUMENT, SAMEBITS_UNSUPPORTED without a GPU,
 *   SAMEBITS_ENVIRONMENT_ERROR if the backend's self-test fails, SAMEBITS_CUDA_ERROR */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_create(
    const samebits_tensor_list* gradients, int32_t policy, const samebits_setting* settings,
    size_t count, const samebits_device_scaler_options* options,
    samebits_device_loss_scaler** scaler);
/* Creates a scaler from the text of samebits_device_loss_scaler_save(). The scaler continues with
 * the bits of an uninterrupted run. */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_load(
    const samebits_tensor_list* gradients, const char* text,
    const samebits_device_scaler_options* options, samebits_device_loss_scaler** scaler);
/* Destroys a scaler. Null is allowed. */
SAMEBITS_C_API void samebits_device_loss_scaler_destroy(samebits_device_loss_scaler* scaler);

/* Writes the address of the current scale in device memory: the factor of the loss, in fp32. */
SAMEBITS_C_API samebits_status
samebits_device_loss_scaler_scale(const samebits_device_loss_scaler* scaler, const float** scale);
/* Writes the address of the last decision in device memory. */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_decision(
    const samebits_device_loss_scaler* scaler, const samebits_step_report** decision);
/* Reads losses before they are scaled, and remembers until the decision whether any loss is NaN or
 * Inf.
 *
 * @param losses  [count] in fp32, device memory */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_observe_losses(
    samebits_device_loss_scaler* scaler, const float* losses, int64_t count, void* stream);
/* Reads all gradients once, and records NaN, Inf and amax for the decision. */
SAMEBITS_C_API samebits_status
samebits_device_loss_scaler_inspect(samebits_device_loss_scaler* scaler, void* stream);
/* Combines this rank's observation, losses included, with those of all ranks; the next
 * samebits_device_loss_scaler_decide() uses the result. Call it on every rank between inspect and
 * decide if gradients or losses are spread over ranks.
 *
 * If the ranks' scalers, norms or shard layouts differ, every rank skips the step and reports the
 * cause ranks_differ.
 *
 * @param ranks  communicator on device memory; works on its stream
 * @returns SAMEBITS_INVALID_ARGUMENT for a communicator on host memory or another rank than that of
 *   options->shards; SAMEBITS_CALLBACK_FAILED */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_agree(
    samebits_device_loss_scaler* scaler, const samebits_communicator* ranks);
/* Decides the step, sets the next scale, and leaves a report.
 *
 * @returns SAMEBITS_CALL_ORDER_ERROR for sharded gradients without agree */
SAMEBITS_C_API samebits_status
samebits_device_loss_scaler_decide(samebits_device_loss_scaler* scaler, void* stream);
/* Calls samebits_device_loss_scaler_inspect(), then samebits_device_loss_scaler_decide(). */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_step(samebits_device_loss_scaler* scaler,
                                                                void* stream);
/* Calls inspect, agree and decide on the stream of a communicator. */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_step_on_ranks(
    samebits_device_loss_scaler* scaler, const samebits_communicator* ranks);
/* Multiplies every tensor of a list by grad_mul of the decision, unless the step is skipped. */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_apply(
    samebits_device_loss_scaler* scaler, const samebits_tensor_list* tensors, void* stream);

/* Writes the next report that has arrived, in order. Never waits.
 *
 * @param arrived  receives 1 if there was a report, else 0 */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_poll(samebits_device_loss_scaler* scaler,
                                                                samebits_step_report* report,
                                                                int32_t* arrived);
/* Writes the number of reports that were overwritten before they were polled. */
SAMEBITS_C_API samebits_status
samebits_device_loss_scaler_lost(const samebits_device_loss_scaler* scaler, uint64_t* lost);

/* State of a device loss scaler. */
typedef struct samebits_device_scaler_state {
  uint64_t steps;         /* steps that were decided */
  uint64_t applied_steps; /* steps that were applied */
  double scale;           /* scale of the coming step */
} samebits_device_scaler_state;

/* Writes the state after all work on the stream. Waits for the stream. */
SAMEBITS_C_API samebits_status samebits_device_loss_scaler_state(
    const samebits_device_loss_scaler* scaler, void* stream, samebits_device_scaler_state* state);
/* Writes settings and state as text after all work on the stream. Waits for the stream. scalar.h
 * says how text is returned. */
SAMEBITS_C_API samebits_status
samebits_device_loss_scaler_save(const samebits_device_loss_scaler* scaler, void* stream,
                                 char* buffer, size_t size, size_t* length);

#ifdef __cplusplus
}
#endif
#endif
