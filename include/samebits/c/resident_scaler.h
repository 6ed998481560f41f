/* Loss scaling in the caller's memory, host or device: for frameworks whose own tensors hold the
 * scale, the decisions and the workspace.
 *
 * One iteration of training:
 *   1. The loss is multiplied by words->scale.
 *   2. For each optimizer, samebits_gradients_unscale() writes a samebits_gradient_report. The
 *      optimizer skips its step if found_inf is 1.
 *   3. samebits_resident_update() sets the scale of the next iteration from all reports.
 * With device memory every step is enqueued on a stream, nothing waits, and the iteration can be
 * captured into a CUDA graph. The bits are those of samebits_loss_scaler. */
#ifndef SAMEBITS_C_RESIDENT_SCALER_H
#define SAMEBITS_C_RESIDENT_SCALER_H

#include <math.h> /* INFINITY, a constant expression */

#include "samebits/c/base.h"
#include "samebits/c/device_loss_scaler.h"
#include "samebits/c/loss_scaler.h"
#include "samebits/c/tensor_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Scale of the coming step: plain data in any memory. */
typedef struct samebits_scaler_words {
  float scale;    /* factor of the loss */
  float inverse;  /* 1 / scale, rounded */
  float bad_loss; /* the caller sets it to any other number than 0, or NaN, if a loss is not
                     finite; an update sets it to 0 */
  uint32_t stop;  /* 1: the policy ended the run */
} samebits_scaler_words;

/* What the gradients of one optimizer look like: plain data in any memory. */
typedef struct samebits_gradient_report {
  double norm;         /* of the unscaled gradients, before clipping; NaN if not computed */
  int64_t first_bad;   /* number of the first bad tensor; -1: none */
  float found_inf;     /* 1: the optimizer must skip its step; else 0 */
  uint32_t amax_bits;  /* of the scaled gradients, as binary32 bits; 7FFFFFFF for NaN */
  uint32_t nonfinite;  /* 1: a scaled gradient was Inf or NaN */
  uint32_t overflowed; /* 1: unscaling made a finite gradient Inf */
  float factor;        /* 1 / scale times the clip factor: what unscaling multiplies by */
  float divisor;       /* scale / clip factor, for optimizers that divide the scaled gradients */
  uint32_t writes;     /* 1: the call multiplied the gradients */
  uint32_t reserved;   /* 0 */
} samebits_gradient_report;

/* Gradients of one optimizer. Tensors in device memory are described, but nothing is copied to the
 * device: the caller copies the tables. The tensors must stay where they are. */
typedef struct samebits_gradients samebits_gradients;

/* Creates a description. Enqueues nothing and does not wait.
 *
 * @param tensors  [count] in fp32, fp16 or bf16, host or device memory; copied
 * @param gradients  receives the description; the caller destroys it
 * @returns as samebits_tensor_list_create() */
SAMEBITS_C_API samebits_status samebits_gradients_create(const samebits_list_tensor* tensors,
                                                         size_t count,
                                                         samebits_gradients** gradients);
/* Destroys a description. Null is allowed. */
SAMEBITS_C_API void samebits_gradients_destroy(samebits_gradients* gradients);
/* Writes how many bytes of device memory samebits_gradients_unscale() needs; both are 0 for
 * gradients in host memory.
 *
 * @param tables  bytes that samebits_gradients_write_tables() writes
 * @param workspace  bytes of a workspace, aligned to 256 bytes, that calls on one stream share
 * @returns SAMEBITS_UNSUPPORTED for device memory if no CUDA backend can run */
SAMEBITS_C_API samebits_status samebits_gradients_sizes(const samebits_gradients* gradients,
                                                        size_t* tables, size_t* workspace);
/* Writes the tables into host memory. The caller copies them to the device, to an address that is a
 * multiple of 16.
 *
 * @param tables  [size], size as samebits_gradients_sizes() says */
SAMEBITS_C_API samebits_status samebits_gradients_write_tables(const samebits_gradients* gradients,
                                                               void* tables, size_t size);

/* Options of samebits_gradients_unscale(). */
typedef struct samebits_unscale_options {
  uint32_t struct_size;
  int32_t rewrites;       /* 1: the gradients are multiplied; 0: they are only read */
  int32_t only_clips;     /* 1: gradients whose norm is not finite, or whose clip factor is 1, are
                             not written */
  int32_t skips_overflow; /* 1: found_inf is also 1 if unscaling makes a finite gradient Inf */
  double max_norm;        /* of all unscaled gradients together; >= 0; infinite: no clipping */
  int64_t first;          /* added to first_bad: the number of the first tensor */
} samebits_unscale_options;
#define SAMEBITS_UNSCALE_OPTIONS_INIT \
  { (uint32_t)sizeof(samebits_unscale_options), 1, 0, 0, INFINITY, 0 }
SAMEBITS_C_API samebits_status samebits_unscale_options_init(samebits_unscale_options* options);

/* Unscales gradients in place by words->inverse, and writes the report.
 *
 * One pass reads and writes the gradients if they are multiplied and not clipped; then `norm` is
 * NaN. Otherwise one pass reads them; another one writes them if they are multiplied.
 *
 * @param tables, workspace  device memory, as samebits_gradients_sizes() says; ignored for host
 *   memory
 * @param words, report  in the memory of the gradients
 * @param options  null: the defaults
 * @param where  backend; threads, for host memory; stream, for device memory; null: the defaults
 * @note Device memory: enqueues and returns. */
SAMEBITS_C_API samebits_status samebits_gradients_unscale(
    const samebits_gradients* gradients, const void* tables, void* workspace,
    const samebits_scaler_words* words, samebits_gradient_report* report,
    const samebits_unscale_options* options, const samebits_executor* where);

/* Writes the size of the state that a scaler's policy keeps between steps. */
SAMEBITS_C_API samebits_status samebits_resident_size(const samebits_loss_scaler* scaler,
                                                      size_t* bytes);
/* Writes the state of a scaler into host memory: the policy's state, the number of updates, and the
 * applied steps of the unnamed optimizer.
 *
 * @param state  [size], size as samebits_resident_size() says
 * @param words  receives the words of the coming step */
SAMEBITS_C_API samebits_status samebits_resident_store(const samebits_loss_scaler* scaler,
                                                       void* state, size_t size,
                                                       samebits_scaler_words* words);
/* Continues a scaler from a state in host memory. The scaler keeps its settings.
 *
 * @returns SAMEBITS_INVALID_ARGUMENT if no scaler with these settings can have the state */
SAMEBITS_C_API samebits_status samebits_resident_load(samebits_loss_scaler* scaler,
                                                      const void* state, size_t size);

/* Bytes of one slot of a report ring. */
#define SAMEBITS_REPORT_SLOT_BYTES 72

/* Ends a step: the policy sets words->scale, and the ring receives a samebits_step_report.
 *
 * @param settings  only its policy and settings are used
 * @param memory  where state, words and reports lie (samebits_memory)
 * @param state  from samebits_resident_store(); changed
 * @param words  changed
 * @param reports  [count], one of each optimizer; the report's norm is that of all together
 * @param ring  [capacity] slots in host memory, zero before the first step; for device memory
 *   page-locked memory that the device can access
 * @param stream  cudaStream_t of device memory
 * @note Device memory: enqueues and returns. */
SAMEBITS_C_API samebits_status samebits_resident_update(
    const samebits_loss_scaler* settings, int32_t memory, void* state, samebits_scaler_words* words,
    const samebits_gradient_report* reports, size_t count, void* ring, uint64_t capacity,
    void* stream);
/* Reads the next report of a ring that has arrived, in order. Never waits.
 *
 * @param next  number of the wanted step, updates of the scaler at first; advanced
 * @param lost  increased by the number of reports that were overwritten before they were read
 * @param arrived  receives 1 if there was a report, else 0 */
SAMEBITS_C_API samebits_status samebits_report_ring_poll(const void* ring, uint64_t capacity,
                                                         uint64_t* next, uint64_t* lost,
                                                         samebits_step_report* report,
                                                         int32_t* arrived);

#ifdef __cplusplus
}
#endif
#endif
