// Optimizer steps: rules, profiles, formats of weights and states, random streams. Plain data.
//
// Contract §12 states every formula.
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// The formula of a step; table_of<update_rule> describes the rules.
enum class update_rule : std::uint8_t {
  adamw,
  adam,
  sgd,  ///< weight decay is added to the gradient
  lion,
  lamb,
};
template <>
inline constexpr auto table_of<update_rule> = enum_table<update_rule>({
    {update_rule::adamw, "adamw", "Adam with decoupled weight decay"},
    {update_rule::adam, "adam", "Adam; weight decay is added to the gradient (L2)"},
    {update_rule::sgd, "sgd",
     "Gradient descent with momentum, dampening and Nesterov's momentum on request"},
    {update_rule::lion, "lion", "The sign of an average of gradients, with decoupled weight decay"},
    {update_rule::lamb, "lamb",
     "Adam's direction, scaled by the norms of weights and direction of each tensor"},
});

/// The operations of a formula: their order, and where an fma stands for a product and a sum.
enum class update_profile : std::uint8_t {
  strict,         ///< products and sums, each rounded; all rules
  fma,            ///< averages and decay by fma; all rules
  torch_foreach,  ///< PyTorch 2.11, foreach=True on CUDA; adamw, adam, sgd
  torch_fused,    ///< PyTorch 2.11, fused=True on CUDA; adamw, adam, sgd
  apex_te,        ///< the formula of Apex and TransformerEngine; adamw, adam
  lightseq,       ///< LightSeq2's formula: eps is not divided by the bias correction; adamw, adam
};
template <>
inline constexpr auto table_of<update_profile> = enum_table<update_profile::lightseq>(
    {"strict", "fma", "torch_foreach", "torch_fused", "apex_te", "lightseq"});

/// Whether a rule has a profile.
SAMEBITS_HD constexpr bool has_profile(update_rule rule, update_profile profile) {
  if (profile == update_profile::strict || profile == update_profile::fma) return true;
  const bool of_torch =
      profile == update_profile::torch_foreach || profile == update_profile::torch_fused;
  return rule == update_rule::adamw || rule == update_rule::adam ||
         (of_torch && rule == update_rule::sgd);
}

/// How an array of weights or states is stored.
///
/// In the formats with scales, each block of consecutive elements has one binary32 scale; the value
/// of an element is RN(value of the code * scale). Blocks begin at element 0 of the unsharded
/// parameter. The last block of a parameter may be shorter.
enum class stored_format : std::uint8_t {
  none,  ///< there is no such array
  fp32,
  bf16_nearest,     ///< bf16, rounded to nearest even
  fp16_nearest,     ///< fp16, rounded to nearest even
  bf16_stochastic,  ///< bf16, rounded stochastically with 16 random bits
  fp16_stochastic,  ///< fp16, rounded stochastically with 16 random bits
  fp16_scaled,      ///< fp16, power-of-two scales
  e4m3_scaled,      ///< e4m3, scales by the scale rule te
  e5m2_scaled,      ///< e5m2, scales by the scale rule te
  e4m3_tensor,      ///< gradients only: e4m3, one scale for the tensor
  e5m2_tensor,      ///< gradients only: e5m2, one scale for the tensor
  /// States only: bitsandbytes' dynamic 8-bit codes with scales by amax. Code 0 is not the number 0:
  /// states begin with scales of 0.
  dynamic8_signed,
  dynamic8_unsigned,  ///< the same for states that are never negative: v
};
template <>
inline constexpr auto table_of<stored_format> = enum_table<stored_format::dynamic8_unsigned>(
    {"none", "fp32", "bf16_nearest", "fp16_nearest", "bf16_stochastic", "fp16_stochastic",
     "fp16_scaled", "e4m3_scaled", "e5m2_scaled", "e4m3_tensor", "e5m2_tensor", "dynamic8_signed",
     "dynamic8_unsigned"});

/// Whether an array of this format has one scale for each block.
SAMEBITS_HD constexpr bool has_block_scales(stored_format f) {
  switch (f) {
    case stored_format::fp16_scaled:
    case stored_format::e4m3_scaled:
    case stored_format::e5m2_scaled:
    case stored_format::dynamic8_signed:
    case stored_format::dynamic8_unsigned: return true;
    default: return false;
  }
}

/// Whether the codes of this format are indices of a table of numbers.
SAMEBITS_HD constexpr bool is_dynamic(stored_format f) {
  return f == stored_format::dynamic8_signed || f == stored_format::dynamic8_unsigned;
}

/// Whether an array of this format needs random bits when it is stored.
SAMEBITS_HD constexpr bool is_stochastic(stored_format f) {
  return f == stored_format::bf16_stochastic || f == stored_format::fp16_stochastic;
}

/// Bytes of one code; 0 for none.
SAMEBITS_HD constexpr int code_bytes(stored_format f) {
  switch (f) {
    case stored_format::none: return 0;
    case stored_format::fp32: return 4;
    case stored_format::e4m3_scaled:
    case stored_format::e5m2_scaled:
    case stored_format::e4m3_tensor:
    case stored_format::e5m2_tensor:
    case stored_format::dynamic8_signed:
    case stored_format::dynamic8_unsigned: return 1;
    default: return 2;
  }
}

/// What an array of 16 bits beside bf16 weights holds.
enum class low_part : std::uint8_t {
  none,   ///< there is no such array
  split,  ///< the low 16 bits of binary32 weights, whose upper 16 bits are the bf16 weights
  kahan,  ///< the rounding error of the bf16 weights, as bf16
};
template <>
inline constexpr auto table_of<low_part> = enum_table<low_part::kahan>({"none", "split", "kahan"});

/// What random bits are used for. Each purpose has random streams of its own.
enum class stream_purpose : std::uint8_t {
  caller = 0,        ///< streams 0 .. 2^56 - 1, whose numbers the caller chooses
  weights = 1,       ///< an optimizer step stores weights
  first_state = 2,   ///< an optimizer step stores the first state
  second_state = 3,  ///< an optimizer step stores the second state
  quantizer = 4,     ///< a quantizer of a training step
  dropout = 5,       ///< dropout of a training step
};
template <>
inline constexpr auto table_of<stream_purpose> = enum_table<stream_purpose::dropout>(
    {"caller", "weights", "first_state", "second_state", "quantizer", "dropout"});

/// Bits of a tensor's number in a random stream's number.
inline constexpr int stream_tensor_bits = 24;

/// The random stream of one purpose, tensor and step. Different arguments give different streams as
/// long as steps are below 2^32.
///
///   bits 63 .. 56  purpose
///   bits 55 .. 32  tensor, below 2^24
///   bits 31 .. 0   step mod 2^32
SAMEBITS_HD constexpr std::uint64_t random_stream_number(stream_purpose purpose,
                                                         std::uint32_t tensor, std::uint64_t step) {
  return (static_cast<std::uint64_t>(purpose) << 56) | (std::uint64_t{tensor} << 32) |
         (step & 0xFFFFFFFFu);
}

/// Hyper-parameters of a group of tensors. Numbers are rounded to binary32 where contract §12 says
/// so.
struct optimizer_settings {
  update_rule rule = update_rule::adamw;
  update_profile profile = update_profile::strict;
  double learning_rate = 1e-3;  ///< finite, >= 0
  double beta1 = 0.9;       ///< all rules except sgd; in [0, 1), below 1 after rounding to binary32
  double beta2 = 0.999;     ///< all rules except sgd; in [0, 1), below 1 after rounding to binary32
  double eps = 1e-8;        ///< adamw, adam, lamb; >= 0, finite after rounding to binary32
  double weight_decay = 0;  ///< finite, >= 0
  double momentum = 0;      ///< sgd; 0 or in [2^-126, 1); 0: there is no state
  double dampening = 0;     ///< sgd; in [0, 1]
  bool nesterov = false;    ///< sgd; needs momentum > 0 and dampening = 0

  friend constexpr bool operator==(const optimizer_settings&, const optimizer_settings&) = default;
};

/// The settings of a rule in Python's classes, which are those of PyTorch and of the rule's authors.
constexpr optimizer_settings default_settings(update_rule rule) {
  optimizer_settings s = {.rule = rule};
  switch (rule) {
    case update_rule::adam:
    case update_rule::sgd: break;
    case update_rule::lion: s.learning_rate = 1e-4, s.beta2 = 0.99; break;
    case update_rule::lamb: s.eps = 1e-6; [[fallthrough]];
    case update_rule::adamw: s.weight_decay = 1e-2; break;
  }
  return s;
}

/// Number of states that a group's tensors have.
SAMEBITS_HD constexpr int state_count(const optimizer_settings& s) {
  switch (s.rule) {
    case update_rule::sgd: return s.momentum == 0 ? 0 : 1;
    case update_rule::lion: return 1;
    default: return 2;
  }
}

}  // namespace samebits
