// Formats and recipes that the verdict chooses from: implementation.
#include "fpinspect/verdict/choices.hpp"

#include <array>
#include <cstddef>

namespace fpinspect {
namespace {

using samebits::format_id;

// Scales are in fp32 (32 bits for each tile), those of MXFP8 in e8m0 (8 bits for each block).
constexpr std::array<choice_spec, 9> specs = {{
    {"fp8 e5m2, one scale", "TE_CURRENT", format_id::e5m2, 8.0},
    {"fp8 e4m3, one scale", "TE_CURRENT", format_id::e4m3, 8.0},
    {"fp8 e4m3, 128x128 tiles", "TE_BLOCK_2D", format_id::e4m3, 8.0 + 32.0 / (128 * 128)},
    {"fp8 e4m3, 1x128 tiles", "TE_BLOCK_1D", format_id::e4m3, 8.0 + 32.0 / 128},
    {"mxfp8 e4m3, 1x32 blocks", "MXFP8_TE", format_id::e4m3, 8.0 + 8.0 / 32},
    {"bf16", "", format_id::bf16, 16.0},
    {"fp16", "", format_id::fp16, 16.0},
    {"fp16, loss scale", "", format_id::fp16, 16.0},
    {"fp32", "", format_id::fp32, 32.0},
}};

constexpr std::array for_weights = {choice::e4m3_tensor, choice::e4m3_128x128, choice::e4m3_mx,
                                    choice::bf16,        choice::fp16,         choice::fp32};
constexpr std::array for_activations = {choice::e4m3_tensor, choice::e4m3_1x128, choice::e4m3_mx,
                                        choice::bf16,        choice::fp16,       choice::fp32};
constexpr std::array for_gradients = {choice::e5m2_tensor, choice::e4m3_tensor, choice::e4m3_1x128,
                                      choice::e4m3_mx,     choice::bf16,        choice::fp16_scaled,
                                      choice::fp32};
constexpr std::array for_state = {choice::bf16, choice::fp32};

}  // namespace

const choice_spec& spec_of(choice c) { return specs[static_cast<std::size_t>(c)]; }

std::span<const choice> choices_for(role r) {
  switch (r) {
    case role::weights: return for_weights;
    case role::gradients: return for_gradients;
    case role::adam_m:
    case role::adam_v: return for_state;
    default: return for_activations;
  }
}

}  // namespace fpinspect
