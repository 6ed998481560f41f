// Writes a whole checkpoint, and says what became of its tensors: what `quantize`, `convert` and
// `dequantize` do with -o.
#pragma once

#include <string>
#include <vector>

#include "fpinspect/checkpoint/plan.hpp"
#include "fpinspect/checkpoint/write.hpp"

namespace fpinspect {

/// Refuses folders of models that are quantized already, as their config.json says.
/// @throws file_error
void require_unquantized(const std::vector<std::string>& files);

/// Writes the tensors, the index, and the files beside them in a folder that is an input. config.json
/// gets, or loses, its `quantization_config`.
/// @param files  as given
void run_checkpoint(const checkpoint_options& options, const std::vector<std::string>& files,
                    const std::vector<planned_tensor>& plan, const checkpoint_writing& how,
                    const session& s);

}  // namespace fpinspect
