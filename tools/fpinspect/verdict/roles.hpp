// Roles of tensors in training, guessed from their names or set with --role, and the formats and
// recipes that the verdict chooses from for each.
#pragma once

#include "fpinspect/common.hpp"

namespace fpinspect {

// --- Roles of tensors in training: guessed from their names, or set with --role ------------------

/// What a tensor is in training. The verdict lists roles in this order.
enum class role : std::uint8_t { weights, activations, gradients, adam_m, adam_v, other };
inline constexpr int role_count = 6;
inline constexpr std::array<std::string_view, role_count> role_names = {
    "weights", "activations", "gradients", "adam_m", "adam_v", "other"};

/// The name on the command line and in JSON: "adam_m".
std::string_view name(role r);
/// The name in text: "Adam m".
std::string_view title(role r);

/// Guesses the role from the parts of a name, such as `grad` in `grad.weight.fc1`. State of the
/// optimizer is recognised first, then gradients, activations and weights.
role guessed_role(std::string_view tensor_name);

/// Whether a tensor has the shape of a weight: weights, and gradients whose name names a weight.
bool is_weight_shaped(std::string_view tensor_name, role r);

/// Layers that stay in 16 bits beside FP8 layers, as patterns of their names: output heads, embeddings
/// and MoE gates. "*.gate" is such a gate, unlike Llama's gate_proj.
inline constexpr std::array<std::string_view, 4> unquantized_layers = {"*lm_head*", "*embed*",
                                                                       "*router*", "*.gate"};

/// Whether the tensor belongs to one of these layers, or names an embedding otherwise ("wte").
bool is_of_unquantized_layer(std::string_view tensor_name);

/// One --role GLOB=ROLE.
struct role_rule {
  std::string pattern;
  role meaning = role::other;
};

/// @throws usage_error  if a text is not GLOB=ROLE
std::vector<role_rule> role_rules(const std::vector<std::string>& texts);

/// The role of the first rule that matches, else the guess.
role role_of(std::string_view tensor_name, std::span<const role_rule> rules);

// --- Formats and recipes that the verdict chooses from, in the order of their cost ---------------

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
  format_id format = format_id::fp32;
  double bits = 32;  ///< for each element, with its share of the scales of whole tiles
};
const choice_spec& spec_of(choice c);

inline bool is_recipe(choice c) { return !spec_of(c).recipe.empty(); }

/// The choices for tensors of a role, cheapest first. Optimizer state has no FP8: one snapshot does
/// not show how errors of repeated rounding add up.
std::span<const choice> choices_for(role r);

}  // namespace fpinspect
