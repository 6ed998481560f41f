// The table of tensor core instructions, and of compute capabilities.
#include "tensor_core_probe/instructions.hpp"

#include <array>

namespace samebits::backends::tensor_cores {
namespace {

using enum format_id;

struct entry {
  instruction id;
  std::string_view name;
  shape operands;
  int min_capability;
};

#define SAMEBITS_ENTRY(ID, A, B, RESULT, PRODUCTS, CAPABILITY) \
  entry{instruction::ID, #ID, {A, B, RESULT, PRODUCTS}, CAPABILITY},
constexpr std::array entries = {SAMEBITS_MMA_INSTRUCTIONS(SAMEBITS_ENTRY)
                                    SAMEBITS_WGMMA_INSTRUCTIONS(SAMEBITS_ENTRY)};
#undef SAMEBITS_ENTRY

const entry& entry_of(instruction i) { return entries[static_cast<std::size_t>(i)]; }

judging_unit mma_unit(int capability) {
  using enum tensor_unit;
  switch (capability) {
    case 75: return {turing_mma, true};
    case 80:
    case 86:
    case 87: return {ampere_mma, true};
    case 89: return {ada_mma, true};
    case 90: return {hopper_mma_sync, true};
    case 100: return {blackwell_mma_sync, true};
    case 120: return {blackwell_rtx_mma, true};
    default: break;
  }
  if (capability < 80) return {turing_mma, false};
  if (capability < 90) return {ampere_mma, false};
  if (capability < 100) return {hopper_mma_sync, false};
  return {capability < 120 ? blackwell_mma_sync : blackwell_rtx_mma, false};
}

}  // namespace

std::string_view name(instruction i) { return entry_of(i).name; }

std::optional<instruction> find_instruction(std::string_view text) {
  for (const entry& e : entries) {
    if (e.name == text) return e.id;
  }
  return std::nullopt;
}

shape shape_of(instruction i) { return entry_of(i).operands; }

std::optional<instruction> find_instruction(tensor_unit unit, const shape& s) {
  if (unit == tensor_unit::blackwell_tcgen05) return std::nullopt;
  for (const entry& e : entries) {
    if (is_wgmma(e.id) == (unit == tensor_unit::hopper_wgmma) && e.operands == s) return e.id;
  }
  return std::nullopt;
}

std::optional<judging_unit> unit_of(instruction i, int capability) {
  if (is_wgmma(i)) {  // only compute capability 9.0 has wgmma
    return capability == 90 ? std::optional(judging_unit{tensor_unit::hopper_wgmma, true})
                            : std::nullopt;
  }
  if (capability < entry_of(i).min_capability) return std::nullopt;
  return mma_unit(capability);
}

evidence evidence_of(const tensor_arithmetic& row, format_id result) {
  return result == format_id::fp32 ? row.fp32 : row.fp16;
}

}  // namespace samebits::backends::tensor_cores
