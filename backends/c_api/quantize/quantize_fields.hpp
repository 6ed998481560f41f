// Converts the C structs of quantization to C++ values: options, outputs and recipes.
#pragma once

#include "samebits/c/recipe.h"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"

namespace samebits::c_api {

// Every function throws invalid_argument, naming the field, for a value that is not allowed.

quantize_options options(const samebits_quantize_options* options);
quantize_outputs outputs(const samebits_quantize_outputs* outputs);
recipe rules(const samebits_recipe* recipe);

}  // namespace samebits::c_api
