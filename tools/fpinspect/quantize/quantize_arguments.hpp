// Option values of `quantize` and `dequantize`, from text to what they mean.
#pragma once

#include <string>
#include <string_view>

#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {

// All of these throw usage_error, naming `option` and what it takes.

/// e4m3 or e5m2.
samebits::format_id code_format_argument(std::string_view option, std::string_view text);

/// fp32, fp16 or bf16.
samebits::format_id wide_format_argument(std::string_view option, std::string_view text);

/// "1x128", or row, column, tensor.
samebits::tile_shape tile_argument(std::string_view option, std::string_view text);

/// As tile_argument reads it.
std::string block_text(const samebits::tile_shape& tile);

samebits::scale_math scale_math_argument(std::string_view option, std::string_view text);
samebits::nonfinite nonfinite_argument(std::string_view option, std::string_view text);

/// The preset of that name; lower case will do.
const samebits::recipe_preset& recipe_argument(std::string_view option, std::string_view text);

/// A finite number >= 0, rounded to binary32.
float bound_argument(std::string_view option, std::string_view text);

/// The executor of that name on all hardware threads; without a name one that leaves the choice to
/// the call. Throws backend_error as host_backend_argument does.
samebits::executor quantizing_backend_argument(std::string_view name);

}  // namespace fpinspect
