/* Optimizer steps: one call updates the weights and states of a list of tensors.
 *
 *   samebits_optimizer_tensor w = {0};  // bf16 weights and gradients, fp32 master and states
 *   w.weights.codes = codes, w.weights.format = SAMEBITS_STORED_FORMAT_BF16_NEAREST;
 *   w.gradient.codes = gradients, w.gradient.format = SAMEBITS_STORED_FORMAT_BF16_NEAREST;
 *   w.master.codes = master, w.master.format = SAMEBITS_STORED_FORMAT_FP32;
 *   w.states[0].codes = m, w.states[0].format = SAMEBITS_STORED_FORMAT_FP32;
 *   w.states[1].codes = v, w.states[1].format = SAMEBITS_STORED_FORMAT_FP32;
 *   w.count = n, w.block = 128;
 *   samebits_optimizer_list* list = NULL;
 *   samebits_optimizer_list_create(&w, 1, SAMEBITS_MEMORY_HOST, &list);
 *   samebits_optimizer_settings adamw = SAMEBITS_OPTIMIZER_SETTINGS_INIT;
 *   samebits_step_input input = SAMEBITS_STEP_INPUT_INIT;
 *   for (input.applied_steps = 1; input.applied_steps <= steps; ++input.applied_steps) {
 *     backward();  // writes gradients
 *     samebits_optimizer_step(list, &adamw, 1, &input, NULL);
 *   }
 *
 * The contract, §12, states every formula. */
#ifndef SAMEBITS_C_OPTIMIZER_H
#define SAMEBITS_C_OPTIMIZER_H

#include "samebits/c/base.h"
#include "samebits/c/device_loss_scaler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The formula of a step. */
typedef int32_t samebits_update_rule;
enum {
  SAMEBITS_UPDATE_RULE_ADAMW = 0, /* Adam with decoupled weight decay */
  SAMEBITS_UPDATE_RULE_ADAM = 1,  /* Adam; weight decay is added to the gradient (L2) */
  SAMEBITS_UPDATE_RULE_SGD = 2,   /* momentum, dampening and Nesterov on request */
  SAMEBITS_UPDATE_RULE_LION = 3,  /* the sign of an average; decoupled weight decay */
  SAMEBITS_UPDATE_RULE_LAMB = 4   /* Adam's direction, scaled by the norms of each tensor */
};

/* The operations of a formula: their order, and where an fma stands for a product and a sum. */
typedef int32_t samebits_update_profile;
enum {
  SAMEBITS_UPDATE_PROFILE_STRICT = 0,        /* products and sums, each rounded; all rules */
  SAMEBITS_UPDATE_PROFILE_FMA = 1,           /* averages and decay by fma; all rules */
  SAMEBITS_UPDATE_PROFILE_TORCH_FOREACH = 2, /* PyTorch 2.11, foreach=True on CUDA */
  SAMEBITS_UPDATE_PROFILE_TORCH_FUSED = 3,   /* PyTorch 2.11, fused=True on CUDA */
  SAMEBITS_UPDATE_PROFILE_APEX_TE = 4,       /* the formula of Apex and TransformerEngine */
  SAMEBITS_UPDATE_PROFILE_LIGHTSEQ = 5       /* LightSeq2's formula */
};

/* How an array of weights, gradients or states is stored. Formats with block scales have one
 * binary32 scale for each block of consecutive elements. */
typedef int32_t samebits_stored_format;
enum {
  SAMEBITS_STORED_FORMAT_NONE = 0, /* there is no such array */
  SAMEBITS_STORED_FORMAT_FP32 = 1,
  SAMEBITS_STORED_FORMAT_BF16_NEAREST = 2, /* rounded to nearest even */
  SAMEBITS_STORED_FORMAT_FP16_NEAREST = 3, /* rounded to nearest even */
  SAMEBITS_STORED_FORMAT_BF16_STOCHASTIC = 4,
  SAMEBITS_STORED_FORMAT_FP16_STOCHASTIC = 5,
  SAMEBITS_STORED_FORMAT_FP16_SCALED = 6,  /* block scales that are powers of two */
  SAMEBITS_STORED_FORMAT_E4M3_SCALED = 7,  /* block scales by the scale rule te */
  SAMEBITS_STORED_FORMAT_E5M2_SCALED = 8,  /* block scales by the scale rule te */
  SAMEBITS_STORED_FORMAT_E4M3_TENSOR = 9,  /* gradients only: one scale for the tensor */
  SAMEBITS_STORED_FORMAT_E5M2_TENSOR = 10, /* gradients only: one scale for the tensor */
  /* States only: bitsandbytes' dynamic 8-bit codes with block scales by amax. Code 0 is not the
   * number 0: states begin with scales of 0. */
  SAMEBITS_STORED_FORMAT_DYNAMIC8_SIGNED = 11,
  SAMEBITS_STORED_FORMAT_DYNAMIC8_UNSIGNED = 12 /* for states that are never negative: v */
};

/* What an array of 16 bits beside bf16 weights holds. */
typedef int32_t samebits_low_part;
enum {
  SAMEBITS_LOW_PART_NONE = 0,  /* there is no such array */
  SAMEBITS_LOW_PART_SPLIT = 1, /* the low 16 bits of binary32 weights */
  SAMEBITS_LOW_PART_KAHAN = 2  /* the rounding error of the weights, as bf16 */
};

/* What random bits are used for. Each purpose has random streams of its own. */
typedef int32_t samebits_stream_purpose;
enum {
  SAMEBITS_STREAM_PURPOSE_CALLER = 0, /* streams 0 .. 2^56 - 1, numbered by the caller */
  SAMEBITS_STREAM_PURPOSE_WEIGHTS = 1,
  SAMEBITS_STREAM_PURPOSE_FIRST_STATE = 2,
  SAMEBITS_STREAM_PURPOSE_SECOND_STATE = 3,
  SAMEBITS_STREAM_PURPOSE_QUANTIZER = 4,
  SAMEBITS_STREAM_PURPOSE_DROPOUT = 5
};

/* Writes the number of the random stream of one purpose, tensor and step. Different arguments give
 * different streams as long as steps are below 2^32.
 *
 * @param purpose  samebits_stream_purpose
 * @param tensor  below 2^24
 * @returns SAMEBITS_INVALID_ARGUMENT for another purpose or tensor */
SAMEBITS_C_API samebits_status samebits_random_stream_number(int32_t purpose, uint32_t tensor,
                                                             uint64_t step, uint64_t* stream);

/* A contiguous array of codes that a step reads and writes. */
typedef struct samebits_stored_array {
  void* codes;
  float* scales;    /* formats with block scales: one for each block; else null */
  int32_t format;   /* samebits_stored_format */
  int32_t reserved; /* 0 */
} samebits_stored_array;

/* A contiguous array of codes that a step reads. */
typedef struct samebits_gradient_array {
  const void* codes;
  const float* scale; /* a factor of all elements, in the memory of the tensors; null: 1 */
  int32_t format;     /* samebits_stored_format: FP32, ..._NEAREST or ..._TENSOR */
  int32_t reserved;   /* 0 */
} samebits_gradient_array;

/* One tensor of an optimizer: arrays of `count` elements each, in one order. A step computes with
 * `master` if there is one, else with `weights` and `low` together, else with `weights`.
 * samebits/optimizer.hpp lists the combinations. */
typedef struct samebits_optimizer_tensor {
  samebits_stored_array weights;
  samebits_gradient_array gradient;
  samebits_stored_array master;
  samebits_stored_array states[2]; /* the second is no fp16 without scales */
  void* low;            /* 16-bit codes, or null */
  int64_t count;        /* in [0, 2^48] */
  uint64_t first_index; /* index of element 0 in the unsharded parameter, for shards */
  const char* name;     /* name in messages; null: the position is used */
  int32_t low_kind;     /* samebits_low_part */
  uint32_t stream;      /* the parameter's number in random streams, below 2^24 */
  uint32_t group;       /* index of its settings */
  uint32_t block;       /* elements for each scale: 128 or 256 */
} samebits_optimizer_tensor;

/* An immutable list of the tensors of an optimizer. The list does not own its arrays: they must stay
 * where they are while the list is used. */
typedef struct samebits_optimizer_list samebits_optimizer_list;

/* Creates a list.
 *
 * @param tensors  [count]; copied
 * @param memory  samebits_memory of all arrays
 * @param list  receives the list; the caller destroys it
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT, naming the tensor, as samebits::optimizer_list throws it;
 *   - SAMEBITS_UNSUPPORTED for device memory if no CUDA backend can run;
 *   - SAMEBITS_CUDA_ERROR. */
SAMEBITS_C_API samebits_status
samebits_optimizer_list_create(const samebits_optimizer_tensor* tensors, size_t count,
                               int32_t memory, samebits_optimizer_list** list);
/* Creates a list whose tables the caller copies to the device. Enqueues nothing, allocates no device
 * memory and does not wait. For host memory the list is that of samebits_optimizer_list_create().
 *
 * Arguments and errors as in samebits_optimizer_list_create(), except that all arrays in device
 * memory must lie on the device of the first one. */
SAMEBITS_C_API samebits_status
samebits_optimizer_list_describe(const samebits_optimizer_tensor* tensors, size_t count,
                                 int32_t memory, samebits_optimizer_list** list);
/* Writes the bytes of the tables of a list of samebits_optimizer_list_describe(); 0 for host
 * memory. */
SAMEBITS_C_API samebits_status
samebits_optimizer_list_tables_size(const samebits_optimizer_list* list, size_t* bytes);
/* Writes the tables into host memory, and tells the list where the caller copies them. The copy must
 * be enqueued before the first step on the list.
 *
 * @param tables  [size], size as samebits_optimizer_list_tables_size() says
 * @param on_device  address in device memory, a multiple of 16; must stay valid as long as the list
 * @returns SAMEBITS_INVALID_ARGUMENT before anything is written, if size is another one, if an
 *   address is null, or if on_device is not a multiple of 16 */
SAMEBITS_C_API samebits_status samebits_optimizer_list_write_tables(samebits_optimizer_list* list,
                                                                    void* tables, size_t size,
                                                                    const void* on_device);
/* Destroys a list. Null is allowed. No list may be destroyed during a CUDA graph capture, nor while
 * a graph exists that uses the list. */
SAMEBITS_C_API void samebits_optimizer_list_destroy(samebits_optimizer_list* list);
/* Writes the number of tensors, and of all elements. Either pointer may be null. */
SAMEBITS_C_API samebits_status samebits_optimizer_list_size(const samebits_optimizer_list* list,
                                                            size_t* tensors, uint64_t* elements);

/* Hyper-parameters of a group of tensors. */
typedef struct samebits_optimizer_settings {
  uint32_t struct_size;
  int32_t rule;         /* samebits_update_rule */
  int32_t profile;      /* samebits_update_profile */
  int32_t nesterov;     /* 1: SGD with Nesterov's momentum; needs momentum > 0, dampening = 0 */
  double learning_rate; /* finite, >= 0 */
  double beta1;         /* all rules except sgd; in [0, 1), below 1 after rounding to binary32 */
  double beta2;         /* all rules except sgd; in [0, 1), below 1 after rounding to binary32 */
  double epsilon;       /* adamw, adam, lamb; >= 0, finite after rounding to binary32 */
  double weight_decay;  /* finite, >= 0 */
  double momentum;      /* sgd; 0 or in [2^-126, 1); 0: there is no state */
  double dampening;     /* sgd; in [0, 1] */
} samebits_optimizer_settings;
#define SAMEBITS_OPTIMIZER_SETTINGS_INIT                                         \
  {                                                                              \
    (uint32_t)sizeof(samebits_optimizer_settings), SAMEBITS_UPDATE_RULE_ADAMW,   \
        SAMEBITS_UPDATE_PROFILE_STRICT, 0, 1e-3, 0.9, 0.999, 1e-8, 0.0, 0.0, 0.0 \
  }
SAMEBITS_C_API samebits_status
samebits_optimizer_settings_init(samebits_optimizer_settings* settings);
/* Writes the number of states that a group's tensors have: 0, 1 or 2. */
SAMEBITS_C_API samebits_status
samebits_optimizer_state_count(const samebits_optimizer_settings* settings, int32_t* count);

/* What a step gets beside tensors and settings. Pointers are to the memory of the tensors. */
typedef struct samebits_step_input {
  uint32_t struct_size;
  float grad_mul;         /* factor of all gradients: 1 / scale, times the clip factor */
  uint64_t applied_steps; /* steps applied so far, this step included; >= 1 */
  /* A loss scaler's decision. If not null, its applied_steps and grad_mul are used, and a step that
   * is not `applied` changes no byte. applied_steps is at least 1 if the step is `applied`. */
  const samebits_step_report* decision;
  /* One learning rate for each group, which replaces that of the settings; null: those of the
   * settings. Rates are finite and >= 0. Rates in device memory are not checked: other rates give
   * unspecified results. */
  const float* learning_rates;
  uint64_t seed; /* of the random bits of stochastic formats */
} samebits_step_input;
#define SAMEBITS_STEP_INPUT_INIT \
  { (uint32_t)sizeof(samebits_step_input), 1.0f, 1, NULL, NULL, 0 }
SAMEBITS_C_API samebits_status samebits_step_input_init(samebits_step_input* input);

/* Applies one step to all tensors of a list. The bits do not depend on backend and threads.
 *
 * @param groups  [count]; a tensor's `group` is an index
 * @param input  null: the defaults
 * @param where  null: one thread, default backend and stream
 * @returns SAMEBITS_INVALID_ARGUMENT, SAMEBITS_UNSUPPORTED or SAMEBITS_ENVIRONMENT_ERROR before
 *   anything is written, as samebits::optimizer_step() throws them; SAMEBITS_CUDA_ERROR;
 *   SAMEBITS_INCOMPLETE_WRITE
 * @note Thread-safe. Device memory: enqueues and returns; can be captured into a CUDA graph. */
SAMEBITS_C_API samebits_status samebits_optimizer_step(const samebits_optimizer_list* list,
                                                       const samebits_optimizer_settings* groups,
                                                       size_t count,
                                                       const samebits_step_input* input,
                                                       const samebits_executor* where);

/* Writes a checkpoint: settings and counters, and of each tensor name, sizes, formats, master weights,
 * low part and states with their scales. Weights and gradients are not in it.
 *
 * @param groups  [count]
 * @param applied_steps  so far
 * @param seed  samebits_step_input.seed
 * @param bytes  [size], or null with size 0 to ask for the length
 * @param length  receives the number of bytes of the checkpoint
 * @returns SAMEBITS_INVALID_ARGUMENT if size is neither 0 nor enough
 * @note Device memory: waits for all work on the device. */
SAMEBITS_C_API samebits_status samebits_optimizer_list_save(
    const samebits_optimizer_list* list, const samebits_optimizer_settings* groups, size_t count,
    uint64_t applied_steps, uint64_t seed, void* bytes, size_t size, size_t* length);
/* Restores the arrays of a list from a checkpoint. Steps continue with the bits of no interruption, if
 * the weights are restored too.
 *
 * @param list  tensors of the same names, sizes and formats in the same order, in any memory
 * @param bytes  [size]
 * @param applied_steps, seed  receive the saved numbers
 * @param groups  [capacity], initialized; receives the first `capacity` settings. May be null with
 *   capacity 0
 * @param count  receives the number of saved settings; may be null
 * @returns SAMEBITS_INVALID_ARGUMENT before anything is written, as samebits::load_optimizer() throws
 *   it, or if `groups` are not initialized or differ in struct_size
 * @note Device memory: waits for all work on the device. */
SAMEBITS_C_API samebits_status samebits_optimizer_list_load(const samebits_optimizer_list* list,
                                                            const void* bytes, size_t size,
                                                            uint64_t* applied_steps, uint64_t* seed,
                                                            samebits_optimizer_settings* groups,
                                                            size_t capacity, size_t* count);

#ifdef __cplusplus
}
#endif
#endif
