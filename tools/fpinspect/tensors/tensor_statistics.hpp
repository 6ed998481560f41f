// `fpinspect tensor --stats`: the distribution of each tensor, its channels and its scales.
#pragma once

#include <span>

#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "samebits/backend.hpp"

namespace fpinspect {

/// Writes moments, norms, percentiles, the amax of rows and columns, and the range of the scales
/// that tiled recipes give. Scales are for matrices of fp32, fp16, bf16 and integers of up to 16
/// bits.
void write_tensor_statistics(std::span<const shown_tensor> tensors, const samebits::executor& where,
                             const terminal& term, output& out);
void write_tensor_statistics_json(std::span<const shown_tensor> tensors,
                                  const samebits::executor& where, output& out);

}  // namespace fpinspect
