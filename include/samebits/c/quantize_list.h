/* Quantizes a list of tensors by one rule; on a GPU in one launch. */
#ifndef SAMEBITS_C_QUANTIZE_LIST_H
#define SAMEBITS_C_QUANTIZE_LIST_H

#include "samebits/c/quantize.h"
#include "samebits/c/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor of a list, its outputs, and its name in messages. A null output is not written. */
typedef struct samebits_quantize_item {
  const samebits_view* in;
  const samebits_view* codes;
  const samebits_view* scales;
  const samebits_view* codes_transposed;
  const samebits_view* scales_transposed;
  const samebits_view* inverse_scales; /* given inverse scales; null: computed */
  const char* name;                    /* null: the position is used */
} samebits_quantize_item;

/* An immutable list of tensors in one memory, with the rule that quantizes all of them. The list
 * does not own its tensors: they must stay where they are while the list is used. */
typedef struct samebits_quantize_list samebits_quantize_list;

/* Creates a list with options. With stochastic rounding, tensor i uses the random stream
 * options->random.stream + i.
 *
 * @param items  [count]; copied. All inputs have the same format; so have all codes, and so
 *   have all scales.
 * @param options  without workspace and inverse scales; null: the defaults
 * @param list  receives the list; the caller destroys it
 * @returns
 *   - SAMEBITS_INVALID_ARGUMENT, naming the tensor, for a tensor that samebits_quantize() refuses,
 *     mixed formats or memory, or outputs that overlap another tensor;
 *   - SAMEBITS_UNSUPPORTED for device memory if no CUDA backend can run. */
SAMEBITS_C_API samebits_status samebits_quantize_list_create(
    const samebits_quantize_item* items, size_t count, const samebits_quantize_options* options,
    samebits_quantize_list** list);
/* Creates a list with a recipe. A delayed recipe requires inverse scales for every item; other
 * recipes allow none. */
SAMEBITS_C_API samebits_status samebits_quantize_list_create_by_recipe(
    const samebits_quantize_item* items, size_t count, const samebits_recipe* recipe,
    samebits_quantize_list** list);
/* Destroys a list. Null is allowed. */
SAMEBITS_C_API void samebits_quantize_list_destroy(samebits_quantize_list* list);

/* Quantizes every tensor of the list: the bits of one samebits_quantize() per tensor.
 *
 * @note Thread-safe. Device memory: the call is enqueued on where->stream and returns. */
SAMEBITS_C_API samebits_status samebits_quantize_list_run(const samebits_quantize_list* list,
                                                          const samebits_executor* where);

#ifdef __cplusplus
}
#endif
#endif
