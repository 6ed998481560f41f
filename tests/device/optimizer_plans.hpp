// Formats and settings of the tests of optimizer steps on GPUs.
#pragma once

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "device/optimizer_buffer.hpp"
#include "samebits/optimizer.hpp"

namespace samebits::support::optimizer_plans {

using enum stored_format;

/// Ways to store weights.
inline constexpr weight_mode modes[] = {
    {fp32},
    {bf16_nearest},
    {fp16_nearest},
    {bf16_stochastic},
    {fp16_stochastic},
    {bf16_nearest, fp32},
    {fp16_nearest, fp32},
    {e4m3_scaled, fp32},
    {e5m2_scaled, fp32},
    {bf16_nearest, fp16_scaled},
    {fp16_nearest, fp16_scaled},
    {e4m3_scaled, fp16_scaled},
    {e5m2_scaled, fp16_scaled},
    {bf16_nearest, none, low_part::split},
    {bf16_nearest, none, low_part::kahan},
};
/// Formats of first states.
inline constexpr stored_format states[] = {
    fp32,        bf16_nearest, fp16_nearest, bf16_stochastic, fp16_stochastic,
    fp16_scaled, e4m3_scaled,  e5m2_scaled,  dynamic8_signed};
/// The format of second states beside a first state: the same, or for odd variants another one.
/// fp16 without scales is refused for second states: bf16 takes its place.
inline constexpr stored_format second_state(std::size_t first, int variant = 0) {
  constexpr std::size_t count = std::size(states);
  const stored_format f = states[variant % 2 == 0 ? first % count : (first * 2 + 1) % count];
  switch (f) {
    case dynamic8_signed: return dynamic8_unsigned;
    case fp16_nearest: return bf16_nearest;
    case fp16_stochastic: return bf16_stochastic;
    default: return f;
  }
}
/// Formats of gradients.
inline constexpr stored_format gradients[] = {fp32, bf16_nearest, fp16_nearest, e4m3_tensor,
                                              e5m2_tensor};

/// Settings of every rule and profile.
inline std::vector<optimizer_settings> all_settings() {
  std::vector<optimizer_settings> all;
  for (int r = 0; r < enum_count<update_rule>; ++r) {
    for (int p = 0; p < enum_count<update_profile>; ++p) {
      optimizer_settings s;
      s.rule = static_cast<update_rule>(r);
      s.profile = static_cast<update_profile>(p);
      if (!has_profile(s.rule, s.profile)) continue;
      s.learning_rate = 0.01 + 0.003 * p;
      s.weight_decay = (r + p) % 3 == 0 ? 0 : 0.1;
      s.beta2 = 0.95;
      if ((r + p) % 4 == 1) s.eps = 0;
      all.push_back(s);
      if (s.rule != update_rule::sgd) continue;
      s.momentum = 0.9;
      s.dampening = 0.25;
      all.push_back(s);
      s.dampening = 0;
      s.nesterov = true;
      all.push_back(s);
    }
  }
  return all;
}

inline bool is_of_torch(const optimizer_settings& s) {
  return s.profile == update_profile::torch_foreach || s.profile == update_profile::torch_fused;
}

/// Whether a group with these settings can update the tensor.
inline bool suits(const tensor_plan& plan, const optimizer_settings& s) {
  const bool bare = plan.mode.master == none && plan.mode.low == low_part::none;
  if (!is_of_torch(s) || !bare) return true;
  const stored_format w = plan.mode.weights;
  if (w == bf16_stochastic || w == fp16_stochastic) return true;
  return w != fp16_nearest && plan.gradient == w && plan.states[0] == w && plan.states[1] == w;
}

inline std::string text(const optimizer_settings& s) {
  return "rule " + std::to_string(static_cast<int>(s.rule)) + ", profile " +
         std::to_string(static_cast<int>(s.profile)) + ", momentum " + std::to_string(s.momentum);
}

}  // namespace samebits::support::optimizer_plans
