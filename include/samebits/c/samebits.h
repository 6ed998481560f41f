/* samebits in C: includes the whole C interface. Every header is C99 and needs no other library.
 *
 *   #include <samebits/c/samebits.h>
 *
 *   samebits_convert_options options = SAMEBITS_CONVERT_OPTIONS_INIT;
 *   options.overflow = SAMEBITS_OVERFLOW_SATURATE;
 *   samebits_view in = samebits_dense_view(SAMEBITS_FORMAT_FP32, x, 1, n);
 *   samebits_view out = samebits_dense_view(SAMEBITS_FORMAT_E4M3, y, 1, n);
 *   if (samebits_convert(&in, &out, &options, NULL) != SAMEBITS_OK) {
 *     fprintf(stderr, "%s\n", samebits_last_error());
 *   }
 *
 * Rules of every function:
 * - A function that can fail returns a samebits_status; results are written through pointers.
 * - After an error, result pointers are not written, unless the comment says otherwise.
 * - No C++ exception leaves a function, and no function prints, aborts or ends the process.
 * - A null pointer that a comment does not allow is SAMEBITS_INVALID_ARGUMENT.
 * - Texts are UTF-8 and end with a null byte. Texts of the caller are copied.
 * - Results have the bits of the C++ function of the same name (docs/c_api.md).
 */
#ifndef SAMEBITS_C_SAMEBITS_H
#define SAMEBITS_C_SAMEBITS_H

#include "samebits/c/array_arithmetic.h"
#include "samebits/c/autocast.h"
#include "samebits/c/base.h"
#include "samebits/c/convert.h"
#include "samebits/c/delayed_scaling.h"
#include "samebits/c/device_loss_scaler.h"
#include "samebits/c/evaluate.h"
#include "samebits/c/loss_scaler.h"
#include "samebits/c/matmul.h"
#include "samebits/c/optimizer.h"
#include "samebits/c/quantize.h"
#include "samebits/c/quantize_list.h"
#include "samebits/c/ranks.h"
#include "samebits/c/recipe.h"
#include "samebits/c/reductions.h"
#include "samebits/c/resident_scaler.h"
#include "samebits/c/rotary.h"
#include "samebits/c/row_functions.h"
#include "samebits/c/scalar.h"
#include "samebits/c/scale_layout.h"
#include "samebits/c/tensor_list.h"
#include "samebits/c/verify.h"

#endif
