// Roles of tensors in training, and what the verdict chooses from for each: implementation.
#include "fpinspect/verdict/roles.hpp"

#include <cctype>

namespace fpinspect {

// --- Roles of tensors in training ----------------------------------------------------------------

namespace {

constexpr std::array<std::string_view, role_count> titles = {"weights", "activations", "gradients",
                                                             "Adam m",  "Adam v",      "other"};

/// The parts between characters that are no letters: "grad", "fc" of "grad.fc1".
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      parts.back() += c;
    } else if (!parts.back().empty()) {
      parts.emplace_back();
    }
  }
  return parts;
}

using word_list = std::initializer_list<std::string_view>;

bool has_part(const std::vector<std::string>& parts, word_list words) {
  return std::ranges::find_first_of(parts, words) != parts.end();
}

const word_list gradient_words = {"grad", "grads", "gradient", "gradients", "wgrad", "dgrad"};
const word_list activation_words = {"act", "acts", "activation", "activations"};
const word_list weight_words = {"weight", "weights", "kernel",    "bias",      "biases",
                                "param",  "params",  "wte",       "wpe",       "gamma",
                                "beta",   "embed",   "embedding", "embeddings"};
/// Weights of Hugging Face models that are parameters of their own, such as those of fused experts:
/// their names end with the layer's.
const word_list weight_layers = {"qkv_proj",        "gate_up_proj",  "gate_proj",    "up_proj",
                                 "down_proj",       "c_attn",        "c_fc",         "c_proj",
                                 "query_key_value", "dense_h_to_4h", "dense_4h_to_h"};

bool is_weight_layer(std::string_view text) {
  const std::string_view last = text.substr(text.rfind('.') + 1);
  return contains(weight_layers, last);
}

const word_list output_words = {"hidden", "input", "inputs", "output",  "outputs",      "logits",
                                "gelu",   "relu",  "silu",   "softmax", "preactivation"};

std::optional<role> optimizer_role(const std::string& text, const std::vector<std::string>& parts) {
  const auto contains = [&](const char* word) { return text.find(word) != std::string::npos; };
  const bool adam = has_part(parts, {"adam", "adamw", "optimizer"});
  const bool second = has_part(parts, {"v", "nu"});
  const bool first = has_part(parts, {"m", "mu"});
  if (contains("exp_avg_sq") || contains("second_moment") || (adam && second)) return role::adam_v;
  if (contains("exp_avg") || contains("first_moment") || contains("momentum") || (adam && first)) {
    return role::adam_m;
  }
  return std::nullopt;
}

role role_argument(std::string_view text) {
  const auto found = std::ranges::find(role_names, lower(text));
  if (found != role_names.end()) return static_cast<role>(found - role_names.begin());
  throw usage_error("--role: \"", text,
                    "\" is not a role; there are weights, activations, gradients, adam_m, "
                    "adam_v and other");
}

}  // namespace

std::string_view name(role r) { return role_names[static_cast<std::size_t>(r)]; }
std::string_view title(role r) { return titles[static_cast<std::size_t>(r)]; }

role guessed_role(std::string_view tensor_name) {
  const std::string text = lower(tensor_name);
  const std::vector<std::string> parts = parts_of(text);
  if (const auto state = optimizer_role(text, parts)) return *state;
  if (has_part(parts, {"scale", "scales"})) return role::other;
  if (has_part(parts, gradient_words)) return role::gradients;
  if (has_part(parts, activation_words)) return role::activations;
  if (has_part(parts, weight_words) || is_weight_layer(text)) return role::weights;
  if (has_part(parts, output_words)) return role::activations;
  return role::other;
}

bool is_weight_shaped(std::string_view tensor_name, role r) {
  const std::vector<std::string> parts = parts_of(lower(tensor_name));
  const bool named = has_part(parts, weight_words) || has_part(parts, {"wgrad"});
  return r == role::weights || (r == role::gradients && named);
}

bool is_of_unquantized_layer(std::string_view tensor_name) {
  const std::string text = lower(tensor_name);
  const std::string layer =
      text.substr(0, text.ends_with(".weight") ? text.size() - 7 : text.size());
  return has_part(parts_of(text), {"wte", "wpe", "embd"}) ||
         std::ranges::any_of(unquantized_layers, [&](std::string_view pattern) {
           return matches_glob(pattern, layer);
         });
}

std::vector<role_rule> role_rules(const std::vector<std::string>& texts) {
  std::vector<role_rule> rules;
  for (const std::string& text : texts) {
    const std::size_t split = text.rfind('=');
    refuse_if(split == std::string::npos || split == 0, "--role: \"", text,
              "\" is not PATTERN=ROLE, such as 'd_*=gradients'");
    rules.push_back({text.substr(0, split), role_argument(text.substr(split + 1))});
  }
  return rules;
}

role role_of(std::string_view tensor_name, std::span<const role_rule> rules) {
  for (const role_rule& rule : rules) {
    if (matches_glob(rule.pattern, tensor_name)) return rule.meaning;
  }
  return guessed_role(tensor_name);
}

// --- Formats and recipes that the verdict chooses from -------------------------------------------

namespace {

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
