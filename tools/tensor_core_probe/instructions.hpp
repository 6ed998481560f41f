// Tensor core instructions: names, shapes, and the hardware unit that executes each on a GPU.
#pragma once

#include <optional>
#include <string_view>

#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

std::string_view name(instruction i);
std::optional<instruction> find_instruction(std::string_view text);
/// Operand formats, result format and products of an instruction.
shape shape_of(instruction i);

/// The instruction that a unit executes for a shape, or nothing if none is listed.
std::optional<instruction> find_instruction(tensor_unit unit, const shape& s);

/// The unit whose row of tensor_unit.hpp is the reference. listed: the row was stated for this
/// exact compute capability.
struct judging_unit {
  tensor_unit unit;
  bool listed;
};

/// The unit that executes an instruction on a GPU of `capability`, 10 * major + minor. For unknown
/// capabilities the nearest known unit; nothing if the GPU has no such instruction.
std::optional<judging_unit> unit_of(instruction i, int capability);

/// The evidence behind a row, for fp32 or fp16 results.
evidence evidence_of(const tensor_arithmetic& row, format_id result);

}  // namespace samebits::backends::tensor_cores
