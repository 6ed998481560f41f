// Tensor core instructions: names, shapes, and the hardware unit that executes each on a GPU. Includes no CUDA
// header.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/instruction_list.hpp"

namespace samebits::backends::tensor_cores {

/// mma.sync instructions, then wgmma instructions.
#define SAMEBITS_NAME(ID, ...) ID,
enum class instruction : std::uint8_t {
  SAMEBITS_TENSOR_CORE_INSTRUCTIONS(SAMEBITS_NAME, SAMEBITS_NAME)
};
#undef SAMEBITS_NAME

SAMEBITS_HD constexpr bool is_wgmma(instruction i) { return i >= instruction::wgmma_f16; }

/// Operands and results of an instruction.
struct shape {
  format_id a;
  format_id b;
  format_id result;  ///< fp32 or fp16; also the format of C
  int products;

  friend constexpr bool operator==(const shape&, const shape&) = default;
};

struct instruction_row {
  std::string_view name;
  shape operands;
  int capability;  ///< the lowest that has it, as 10 * major + minor
};

/// Formats as PTX names them.
namespace ptx {
using enum format_id;
inline constexpr format_id f16 = fp16;
inline constexpr format_id f32 = fp32;
}  // namespace ptx

#define SAMEBITS_ROW(ID, A, B, RESULT, PRODUCTS, CAPABILITY) \
  instruction_row{#ID, {ptx::A, ptx::B, ptx::RESULT, PRODUCTS}, CAPABILITY},
inline constexpr std::array instruction_rows = {
    SAMEBITS_TENSOR_CORE_INSTRUCTIONS(SAMEBITS_ROW, SAMEBITS_ROW)};
#undef SAMEBITS_ROW
inline constexpr int instruction_count = static_cast<int>(instruction_rows.size());

constexpr const instruction_row& row_of(instruction i) {
  return instruction_rows[static_cast<std::size_t>(i)];
}
constexpr std::string_view name(instruction i) { return row_of(i).name; }
constexpr const shape& shape_of(instruction i) { return row_of(i).operands; }

/// The instruction that a unit executes for a shape, or nothing if none is listed.
std::optional<instruction> find_instruction(tensor_unit unit, const shape& s);

/// The reference row of a unit's instruction, or nothing if there is no such instruction.
std::optional<tensor_arithmetic> find_row(tensor_unit unit, const shape& s);

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
