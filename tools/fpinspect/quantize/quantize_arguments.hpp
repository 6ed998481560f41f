// Option values of `quantize` and `dequantize`: converts text to values.
#pragma once

#include <string>
#include <string_view>

#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"

namespace fpinspect {

// All functions throw usage_error; the message names `option` and the accepted values.

/// e4m3 or e5m2.
samebits::format_id code_format_argument(std::string_view option, std::string_view text);

/// fp32, fp16 or bf16.
samebits::format_id wide_format_argument(std::string_view option, std::string_view text);

/// Parses "1x128", or row, column, tensor.
samebits::tile_shape tile_argument(std::string_view option, std::string_view text);

/// The tile that the metadata of a file name.
/// @param path  of the file
/// @throws file_error  that names the file, for any other text
samebits::tile_shape stored_tile(const std::string& path, std::string_view text);

/// The text of a tile, in the form that tile_argument() reads.
std::string block_text(const samebits::tile_shape& tile);

samebits::scale_rule scale_rule_argument(std::string_view option, std::string_view text);
samebits::nonfinite nonfinite_argument(std::string_view option, std::string_view text);

/// The preset with this name; lower case is accepted.
const samebits::recipe_preset& recipe_argument(std::string_view option, std::string_view text);

/// A finite number >= 0, rounded to binary32.
float bound_argument(std::string_view option, std::string_view text);

/// The executor with this name, on all hardware threads. Without a name, the call chooses the
/// backend. Throws backend_error as host_backend_argument() does.
samebits::executor quantizing_backend_argument(std::string_view name);

}  // namespace fpinspect
