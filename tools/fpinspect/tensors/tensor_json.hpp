// The JSON of `tensor` for one tensor.
#pragma once

#include <span>

#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// Writes an object. stats.casts must contain the formats.
void write_tensor_json(json_writer& json, const shown_tensor& tensor,
                       const samebits::cast_statistics& stats,
                       std::span<const samebits::format_id> formats);

}  // namespace fpinspect
