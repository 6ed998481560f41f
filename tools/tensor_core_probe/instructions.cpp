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

#define SAMEBITS_ENTRY(ID, ...) \
  { instruction::ID, #ID, __VA_ARGS__ }
constexpr std::array entries = {
    entry SAMEBITS_ENTRY(mma_f16_k16, {fp16, fp16, fp32, 16}, 80),
    entry SAMEBITS_ENTRY(mma_f16_k8, {fp16, fp16, fp32, 8}, 75),
    entry SAMEBITS_ENTRY(mma_f16_f16_k16, {fp16, fp16, fp16, 16}, 80),
    entry SAMEBITS_ENTRY(mma_f16_f16_k8, {fp16, fp16, fp16, 8}, 75),
    entry SAMEBITS_ENTRY(mma_bf16_k16, {bf16, bf16, fp32, 16}, 80),
    entry SAMEBITS_ENTRY(mma_bf16_k8, {bf16, bf16, fp32, 8}, 80),
    entry SAMEBITS_ENTRY(mma_tf32_k8, {tf32, tf32, fp32, 8}, 80),
    entry SAMEBITS_ENTRY(mma_tf32_k4, {tf32, tf32, fp32, 4}, 80),
    entry SAMEBITS_ENTRY(mma_e4m3_k32, {e4m3, e4m3, fp32, 32}, 89),
    entry SAMEBITS_ENTRY(mma_e5m2_k32, {e5m2, e5m2, fp32, 32}, 89),
    entry SAMEBITS_ENTRY(mma_e4m3_e5m2_k32, {e4m3, e5m2, fp32, 32}, 89),
    entry SAMEBITS_ENTRY(mma_e5m2_e4m3_k32, {e5m2, e4m3, fp32, 32}, 89),
    entry SAMEBITS_ENTRY(mma_e4m3_k16, {e4m3, e4m3, fp32, 16}, 89),
    entry SAMEBITS_ENTRY(mma_e5m2_k16, {e5m2, e5m2, fp32, 16}, 89),
    entry SAMEBITS_ENTRY(mma_e4m3_e5m2_k16, {e4m3, e5m2, fp32, 16}, 89),
    entry SAMEBITS_ENTRY(mma_e5m2_e4m3_k16, {e5m2, e4m3, fp32, 16}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e4m3_k32, {e4m3, e4m3, fp16, 32}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e5m2_k32, {e5m2, e5m2, fp16, 32}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e4m3_e5m2_k32, {e4m3, e5m2, fp16, 32}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e5m2_e4m3_k32, {e5m2, e4m3, fp16, 32}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e4m3_k16, {e4m3, e4m3, fp16, 16}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e5m2_k16, {e5m2, e5m2, fp16, 16}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e4m3_e5m2_k16, {e4m3, e5m2, fp16, 16}, 89),
    entry SAMEBITS_ENTRY(mma_f16_e5m2_e4m3_k16, {e5m2, e4m3, fp16, 16}, 89),
    entry SAMEBITS_ENTRY(wgmma_f16, {fp16, fp16, fp32, 16}, 90),
    entry SAMEBITS_ENTRY(wgmma_f16_f16, {fp16, fp16, fp16, 16}, 90),
    entry SAMEBITS_ENTRY(wgmma_bf16, {bf16, bf16, fp32, 16}, 90),
    entry SAMEBITS_ENTRY(wgmma_tf32, {tf32, tf32, fp32, 8}, 90),
    entry SAMEBITS_ENTRY(wgmma_e4m3, {e4m3, e4m3, fp32, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_e5m2, {e5m2, e5m2, fp32, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_e4m3_e5m2, {e4m3, e5m2, fp32, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_e5m2_e4m3, {e5m2, e4m3, fp32, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_f16_e4m3, {e4m3, e4m3, fp16, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_f16_e5m2, {e5m2, e5m2, fp16, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_f16_e4m3_e5m2, {e4m3, e5m2, fp16, 32}, 90),
    entry SAMEBITS_ENTRY(wgmma_f16_e5m2_e4m3, {e5m2, e4m3, fp16, 32}, 90),
};
#undef SAMEBITS_ENTRY

constexpr bool in_order() {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (static_cast<std::size_t>(entries[i].id) != i) return false;
  }
  return entries.size() == instruction_count;
}
static_assert(in_order());

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
