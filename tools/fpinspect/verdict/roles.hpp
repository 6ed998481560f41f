// Roles of tensors in training: guessed from their names, or set with --role.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fpinspect {

/// What a tensor is in training. The verdict lists roles in this order.
enum class role : std::uint8_t { weights, activations, gradients, adam_m, adam_v, other };
inline constexpr int role_count = 6;

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

}  // namespace fpinspect
