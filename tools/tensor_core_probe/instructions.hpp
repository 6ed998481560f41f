// Tensor core instructions: names, shapes, and the unit that a GPU has behind each.
#pragma once

#include <optional>
#include <string_view>

#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

std::string_view name(instruction i);
std::optional<instruction> find_instruction(std::string_view text);
shape shape_of(instruction i);

/// The instruction of a shape in the code of that unit, or nothing where none is listed.
std::optional<instruction> find_instruction(tensor_unit unit, const shape& s);

/// A unit, and whether its rows were stated of this very compute capability.
struct judging_unit {
  tensor_unit unit;
  bool listed;
};

/// The unit behind an instruction of a GPU of compute capability 10 * major + minor, or the nearest
/// there is; nothing where the GPU has no such instruction.
std::optional<judging_unit> unit_of(instruction i, int capability);

/// How well a row is known for a kind of result.
evidence evidence_of(const tensor_arithmetic& row, format_id result);

}  // namespace samebits::backends::tensor_cores
