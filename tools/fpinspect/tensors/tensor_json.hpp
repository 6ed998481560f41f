// The JSON of `tensor` for one tensor.
#pragma once

#include <span>

#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/tensors/tensor_analyser.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// Writes an object. stats.formats must contain the formats.
void write_tensor_json(json_writer& json, const shown_tensor& tensor, const tensor_stats& stats,
                       std::span<const samebits::format_id> formats);

}  // namespace fpinspect
