// Which instruction a unit executes for a shape, and which unit a compute capability has.
#include "tensor_core_probe/instructions.hpp"

#include <algorithm>

namespace samebits::backends::tensor_cores {
namespace {

/// The unit that executes mma.sync on GPUs of a compute capability, ascending.
struct capability_row {
  int capability;
  tensor_unit unit;
};
using enum tensor_unit;
constexpr capability_row mma_units[] = {
    {75, turing_mma}, {80, ampere_mma},      {86, ampere_mma},          {87, ampere_mma},
    {89, ada_mma},    {90, hopper_mma_sync}, {100, blackwell_mma_sync}, {120, blackwell_rtx_mma}};

}  // namespace

std::optional<instruction> find_instruction(tensor_unit unit, const shape& s) {
  if (unit == blackwell_tcgen05) return std::nullopt;
  for (int n = 0; n < instruction_count; ++n) {
    const auto i = static_cast<instruction>(n);
    if (is_wgmma(i) == (unit == hopper_wgmma) && shape_of(i) == s) return i;
  }
  return std::nullopt;
}

std::optional<judging_unit> unit_of(instruction i, int capability) {
  if (is_wgmma(i)) {  // only compute capability 9.0 has wgmma
    return capability == 90 ? std::optional(judging_unit{hopper_wgmma, true}) : std::nullopt;
  }
  if (capability < row_of(i).capability) return std::nullopt;
  // No instruction is of a lower capability than the first row.
  const auto above =
      std::ranges::upper_bound(mma_units, capability, {}, &capability_row::capability);
  const capability_row& nearest = *(above - 1);
  return judging_unit{nearest.unit, nearest.capability == capability};
}

std::optional<tensor_arithmetic> find_row(tensor_unit unit, const shape& s) {
  const auto operands = tensor_operands_of(s.a, s.b);
  const auto row = operands ? find_tensor_row(unit, *operands) : std::nullopt;
  if (!row || s.products == 0) return {};  // 0 stands for a missing narrow instruction
  if (s.products != row->products && s.products != row->narrow_products) return {};
  if (s.result != format_id::fp32 && s.result != format_id::fp16) return {};
  if (evidence_of(*row, s.result) == evidence::none) return {};
  return row;
}

evidence evidence_of(const tensor_arithmetic& row, format_id result) {
  return result == format_id::fp32 ? row.fp32 : row.fp16;
}

}  // namespace samebits::backends::tensor_cores
