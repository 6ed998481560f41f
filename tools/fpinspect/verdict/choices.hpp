// Formats and recipes that the verdict chooses from, in the order of their cost.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fpinspect/verdict/roles.hpp"
#include "samebits/core/format.hpp"

namespace fpinspect {

/// A way to store the elements of a tensor.
enum class choice : std::uint8_t {
  e5m2_tensor,   ///< one scale for the tensor
  e4m3_tensor,   ///< the same
  e4m3_128x128,  ///< a scale for each 128x128 tile
  e4m3_1x128,    ///< a scale for each 1x128 tile
  e4m3_mx,       ///< MXFP8: a power of two for each 1x32 block
  bf16,
  fp16,
  fp16_scaled,  ///< fp16 after multiplication with the loss scale
  fp32,
};

/// The constant data of a choice.
struct choice_spec {
  std::string_view name;    ///< in JSON and beside figures: "fp8 e4m3, 1x128 tiles"
  std::string_view recipe;  ///< name for `quantize --recipe`; empty for formats
  samebits::format_id format = samebits::format_id::fp32;
  double bits = 32;  ///< for each element, with its share of the scales of whole tiles
};
const choice_spec& spec_of(choice c);

inline bool is_recipe(choice c) { return !spec_of(c).recipe.empty(); }

/// The choices for tensors of a role, cheapest first. Optimizer state has no FP8: one snapshot does
/// not show how errors of repeated rounding add up.
std::span<const choice> choices_for(role r);

}  // namespace fpinspect
