/* Several ranks: a communicator of the caller, one decision and one norm on all ranks, and sums of
 * gradients. */
#ifndef SAMEBITS_C_RANKS_H
#define SAMEBITS_C_RANKS_H

#include "samebits/c/base.h"
#include "samebits/c/loss_scaler.h"
#include "samebits/c/quantize.h"
#include "samebits/c/scalar.h"
#include "samebits/c/tensor_list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- communicator ----------------------------------------------------------------------------- */

/* Replaces each word by its maximum over all ranks, as unsigned integers. Returns 0, or another
 * value if the network failed.
 *
 * @param words  [count], the same count on every rank */
typedef int32_t (*samebits_all_reduce_max_function)(void* user, uint32_t* words, size_t count);
/* Exchanges bytes between the ranks. Returns 0, or another value if the network failed. The two
 * buffers do not overlap.
 *
 * all_gather: `sent` is this rank's message; `received` gets the messages of ranks 0, 1, ...:
 *   received_bytes = size * sent_bytes.
 * all_to_all: `sent` has `size` equal blocks, block r for rank r; block r of `received` comes from
 *   rank r: received_bytes = sent_bytes. */
typedef int32_t (*samebits_exchange_function)(void* user, const void* sent, size_t sent_bytes,
                                              void* received, size_t received_bytes);

/* The ranks of a run, as seen by one rank: the three operations that the library uses, over the
 * caller's network. docs/ranks.md shows them over MPI and NCCL.
 *
 * All ranks make the same calls in the same order. Buffers lie in `memory`. In device memory an
 * operation is enqueued on `stream` and may still run when the function returns. In host memory the
 * operation is complete when the function returns. Functions are called on the thread of the call,
 * only during the call.
 *
 * If a function returns a value other than 0, the call ends with SAMEBITS_CALLBACK_FAILED, or with
 * SAMEBITS_INCOMPLETE_WRITE if some results were already written. */
typedef struct samebits_communicator {
  uint32_t struct_size;
  int32_t rank;   /* 0 .. size - 1 */
  int32_t size;   /* number of ranks, >= 1 */
  int32_t memory; /* samebits_memory of the buffers */
  void* stream;   /* cudaStream_t of operations on device memory; null: the default stream */
  void* user;     /* passed to the functions */
  samebits_all_reduce_max_function all_reduce_max;
  samebits_exchange_function all_gather;
  samebits_exchange_function all_to_all;
} samebits_communicator;
/* One rank in host memory, which needs no functions. */
#define SAMEBITS_COMMUNICATOR_INIT                                                               \
  {                                                                                              \
    (uint32_t)sizeof(samebits_communicator), 0, 1, SAMEBITS_MEMORY_HOST, NULL, NULL, NULL, NULL, \
        NULL                                                                                     \
  }
SAMEBITS_C_API samebits_status samebits_communicator_init(samebits_communicator* ranks);

/* Every function below is called on every rank. Errors of every function:
 * - SAMEBITS_INVALID_ARGUMENT for a communicator with a field out of range, on this rank alone;
 * - SAMEBITS_CALLBACK_FAILED;
 * - SAMEBITS_UNSUPPORTED for a communicator on device memory if no CUDA backend can run;
 * - SAMEBITS_ENVIRONMENT_ERROR, SAMEBITS_CUDA_ERROR.
 * If one rank of samebits_sum_shards(), samebits_reduce_gradients() or samebits_shard_layout_create()
 * refuses its other arguments, the other ranks return SAMEBITS_RANK_ERROR, and nothing is written.
 * In the other functions a rank that refuses its arguments leaves the other ranks waiting. */

/* Gathers the message of every rank on every rank, from and to host memory. A communicator on
 * device memory gets copies of the messages there. Waits for the other ranks.
 *
 * @param sent  [bytes], the same number of bytes on every rank
 * @param received  [size * bytes]: the messages of ranks 0, 1, ... */
SAMEBITS_C_API samebits_status samebits_gather_messages(const samebits_communicator* ranks,
                                                        const void* sent, size_t bytes,
                                                        void* received);

/* --- one decision ----------------------------------------------------------------------------- */

/* Observation of one rank's gradients or, as a result, of the gradients of all ranks. */
typedef struct samebits_rank_observation {
  int32_t nonfinite;          /* 1: a scaled gradient is Inf or NaN */
  int32_t loss_nonfinite;     /* 1: the loss was Inf or NaN before scaling */
  int32_t unscaled_nonfinite; /* 1: unscaling made a finite gradient Inf */
  uint32_t amax_bits;         /* max magnitude as binary32 bits, or SAMEBITS_AMAX_UNKNOWN */
  int64_t first_bad;          /* position of the first bad tensor; -1: none */
  int64_t bad_rank; /* result: the first rank with a bad loss, else with a bad gradient; -1: none */
} samebits_rank_observation;

/* Combines the observations of all ranks of one step. The result is the same on every rank. Waits
 * for the other ranks.
 *
 * @param mine  observation of this rank; a rank without gradients has amax_bits 0
 * @param all  receives what all ranks observed together */
SAMEBITS_C_API samebits_status samebits_agree(const samebits_communicator* ranks,
                                              const samebits_rank_observation* mine,
                                              samebits_rank_observation* all);
/* Combines an optimizer's observation, losses included, with those of all ranks. Afterwards the
 * scalers of all ranks take the same decisions. Call it between unscale or observe and step, for
 * each optimizer. Waits for the other ranks.
 *
 * @param optimizer  null or "": the unnamed optimizer
 * @param all  receives what all ranks observed together; may be null
 * @returns SAMEBITS_RANK_ERROR, on every rank, if the ranks' scalers have different settings or
 *   states; SAMEBITS_CALL_ORDER_ERROR, on this rank alone, if the gradients were not observed */
SAMEBITS_C_API samebits_status samebits_loss_scaler_agree(samebits_loss_scaler* scaler,
                                                          const samebits_communicator* ranks,
                                                          const char* optimizer,
                                                          samebits_rank_observation* all);

/* --- one norm --------------------------------------------------------------------------------- */

/* One rank's part of a sum that is spread over ranks: the inputs [first, first + count) of the tree
 * of samebits_sum(). Not thread-safe; distinct parts are independent. */
typedef struct samebits_tree_part samebits_tree_part;

/* Creates an empty part.
 *
 * @param first  index of the first input: a multiple of 4096, below 2^62
 * @param part  receives the part; the caller destroys it */
SAMEBITS_C_API samebits_status samebits_tree_part_create(uint64_t first, samebits_tree_part** part);
/* Destroys a part. Null is allowed. */
SAMEBITS_C_API void samebits_tree_part_destroy(samebits_tree_part* part);
/* Appends inputs.
 *
 * @param inputs  [count], host memory */
SAMEBITS_C_API samebits_status samebits_tree_part_add(samebits_tree_part* part,
                                                      const double* inputs, size_t count);
/* Appends the squares of the elements of a matrix, row by row.
 *
 * @param elements  any format and strides, host memory */
SAMEBITS_C_API samebits_status samebits_tree_part_add_squares(samebits_tree_part* part,
                                                              const samebits_view* elements);
/* Appends whole chunks of 4096 inputs by the value of their subtree, such as a result of
 * samebits_sum_of_squares() or of samebits_tensor_list_inspect() on device memory.
 *
 * @param chunks  a power of two; the subtree begins at a multiple of 4096 * chunks inputs
 * @param value  the sum over the 4096 * chunks inputs */
SAMEBITS_C_API samebits_status samebits_tree_part_add_subtree(samebits_tree_part* part,
                                                              uint64_t chunks, double value);
/* Writes the index of the first input and the number of inputs so far. Either pointer may be
 * null. */
SAMEBITS_C_API samebits_status samebits_tree_part_extent(const samebits_tree_part* part,
                                                         uint64_t* first, uint64_t* count);

/* Combines the parts of all ranks. Every rank gets the bits of samebits_sum() over all inputs in
 * one place. Waits for the other ranks.
 *
 * @param parts  [count]; parts[i] is this rank's part of tensor i. A part without inputs means that
 *   other ranks hold the tensor. Every rank passes equally many parts in the same order.
 * @param sums  [count]; receives the sum of each tensor; may be null
 * @param total  receives the sum over the tree with the tensors' sums as inputs; may be null
 * @returns SAMEBITS_RANK_ERROR, on every rank, naming tensor and ranks, if parts overlap, leave a
 *   gap or differ in number */
SAMEBITS_C_API samebits_status samebits_sum_shards(const samebits_communicator* ranks,
                                                   const samebits_tree_part* const* parts,
                                                   size_t count, double* sums, double* total);

/* --- one sum of gradients --------------------------------------------------------------------- */

/* Options of samebits_reduce_gradients(); the same on every rank. */
typedef struct samebits_gradient_reduction {
  uint32_t struct_size;
  int32_t communication;         /* samebits_format: fp32, fp16, bf16, e4m3 or e5m2 */
  int32_t rule;                  /* samebits_scale_rule of e4m3 and e5m2 */
  int32_t rounding;              /* into `communication`: nearest_even or stochastic */
  samebits_random_stream random; /* read only by stochastic rounding; rank k adds k to stream */
  float factor;                  /* of the total; finite. 1 / size for the mean */
  uint32_t reserved;             /* 0 */
  int64_t elements_at_once;      /* max number of elements in one message, >= 1; changes no bit */
  const char* backend;           /* CUDA backend; null or "": the default */
} samebits_gradient_reduction;
#define SAMEBITS_GRADIENT_REDUCTION_INIT                                                           \
  {                                                                                                \
    (uint32_t)sizeof(samebits_gradient_reduction), SAMEBITS_FORMAT_BF16, SAMEBITS_SCALE_RULE_POW2, \
        SAMEBITS_ROUNDING_NEAREST_EVEN, SAMEBITS_RANDOM_STREAM_INIT, 1.0f, 0, 4194304, NULL        \
  }
SAMEBITS_C_API samebits_status
samebits_gradient_reduction_init(samebits_gradient_reduction* options);

/* Replaces the gradients on every rank by their sum over all ranks, in a fixed order of steps.
 * Every rank gets the same bits, on any network and any machine.
 *
 * @param gradients  [count] matrices in fp32, fp16 or bf16, mixed, in the communicator's memory. No
 *   element is in two matrices. Every rank lists the same shapes and formats in the same order.
 * @param options  null: the defaults
 * @returns SAMEBITS_RANK_ERROR, on every rank, if the ranks' lists or options differ
 * @note Host memory: waits for the other ranks. Device memory: the sums are enqueued on
 *   ranks->stream; the call waits only while the ranks compare their arguments. It cannot be
 *   captured into a CUDA graph. */
SAMEBITS_C_API samebits_status
samebits_reduce_gradients(const samebits_communicator* ranks, const samebits_view* gradients,
                          size_t count, const samebits_gradient_reduction* options);

/* --- layout of shards ------------------------------------------------------------------------- */

/* Says which elements of each gradient this rank holds, for a device loss scaler that clips by the
 * norm of all shards. Immutable. */
typedef struct samebits_shard_layout samebits_shard_layout;

/* Creates a layout from those of all ranks and checks that they fit together. Waits for the other
 * ranks.
 *
 * @param shards  tensor i holds this rank's elements of gradient i; a tensor without elements means
 *   that other ranks hold the gradient. Every rank lists equally many tensors in the same order.
 * @param first  [number of tensors]; index in gradient i of the first element of the shard, counted
 *   row by row. A multiple of 4096; ignored for a shard without elements.
 * @param layout  receives the layout; the caller destroys it
 * @returns SAMEBITS_RANK_ERROR, on every rank, naming the tensor, if shards overlap or leave a
 *   gap */
SAMEBITS_C_API samebits_status samebits_shard_layout_create(const samebits_communicator* ranks,
                                                            const samebits_tensor_list* shards,
                                                            const uint64_t* first,
                                                            samebits_shard_layout** layout);
/* Destroys a layout. Null is allowed. Device loss scalers keep the layout that they need. */
SAMEBITS_C_API void samebits_shard_layout_destroy(samebits_shard_layout* layout);

#ifdef __cplusplus
}
#endif
#endif
