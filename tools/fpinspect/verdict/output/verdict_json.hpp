// The verdict as JSON.
#pragma once

#include <span>

#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/verdict/verdict.hpp"

namespace fpinspect {

/// Writes the object `verdict`.
void write_verdict_json(json_writer& json, const verdict& v,
                        std::span<const tensor_evidence> tensors);

}  // namespace fpinspect
