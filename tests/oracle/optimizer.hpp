// Optimizer steps of contract §12: one element, and how weights and states are stored. Every
// operation is an exact rational result, rounded once.
#pragma once

#include <cstdint>
#include <vector>

#include "oracle/format_table.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::oracle {

using samebits::update_profile;
using samebits::update_rule;

/// Settings of a group; numbers are binary64 codes.
struct update_settings {
  update_rule rule = update_rule::adamw;
  update_profile profile = update_profile::strict;
  std::uint64_t lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
  std::uint64_t momentum = 0, dampening = 0;
  bool nesterov = false;
};

/// What a step adds to the settings.
struct update_inputs {
  std::uint64_t step = 1;
  std::uint32_t grad_mul = 0x3F800000;  ///< binary32 code
  /// torch_fused: 1 - powf(f(beta), step) of both betas, binary32 codes.
  std::uint32_t fused_correction1 = 0, fused_correction2 = 0;
};

/// Binary32 codes; states that a rule does not have stay as they are.
struct updated {
  std::uint32_t weight, first, second;
};

/// One element after a step; `gradient` is the tensor's value. `narrow`: the format to which
/// torch_foreach rounds each result, or null. Rule lamb: only the states.
updated update_element(const update_settings& s, const update_inputs& in, const updated& before,
                       std::uint32_t gradient, const format* narrow = nullptr);

/// Rule lamb: the direction of an element, from the stored states.
std::uint32_t lamb_direction(const update_settings& s, const update_inputs& in, const updated& x);
/// Rule lamb: the weights after the step, from the codes of a whole tensor.
std::vector<std::uint32_t> lamb_weights(const update_settings& s,
                                        const std::vector<std::uint32_t>& weights,
                                        const std::vector<std::uint32_t>& directions);

/// Two codes of 16 bits for one weight.
struct halves {
  std::uint32_t high, low;
};
halves split(std::uint32_t weight);
std::uint32_t joined(const halves& x);
halves kahan(std::uint32_t weight);
std::uint32_t compensated(const halves& x);

/// A block of values with one scale.
struct scaled_block {
  std::uint32_t scale;  ///< binary32 code
  std::vector<std::uint32_t> codes;
};
/// `codes` is e4m3, e5m2 or fp16; the scale of fp16 is a power of two.
scaled_block stored_block(const format& codes, const std::vector<std::uint32_t>& values);

/// The number of a dynamic 8-bit code, as a binary32 code.
std::uint32_t dynamic_value(bool is_signed, std::uint32_t code);
/// A block of dynamic 8-bit codes.
scaled_block dynamic_block(bool is_signed, const std::vector<std::uint32_t>& values);

}  // namespace samebits::oracle
