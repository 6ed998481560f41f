// Training of one tensor with bf16 weights, for tests of optimizer steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "samebits/optimizer.hpp"

namespace samebits {

/// One tensor of an AdamW with bf16 weights, and its steps.
struct bf16_training {
  std::vector<std::uint16_t> weights = std::vector<std::uint16_t>(1000, 0x3F80);
  std::vector<std::uint16_t> low = std::vector<std::uint16_t>(1000);
  std::vector<float> master = std::vector<float>(1000, 1.0f);
  std::vector<float> gradient = std::vector<float>(1000);
  std::vector<float> first = std::vector<float>(1000), second = std::vector<float>(1000);
  optimizer_settings settings = {.learning_rate = 1e-3, .weight_decay = 0.01};
  std::uint64_t steps = 0;

  optimizer_tensor tensor(bool has_master, low_part kind) {
    optimizer_tensor t = {
        .weights = {weights.data(), stored_format::bf16_nearest},
        .gradient = {gradient.data(), stored_format::fp32},
        .states = {{{first.data(), stored_format::fp32}, {second.data(), stored_format::fp32}}},
        .count = 1000};
    if (has_master) t.master = {master.data(), stored_format::fp32};
    t.low_kind = kind;
    if (kind != low_part::none) t.low = low.data();
    return t;
  }
  void train(bool has_master, low_part kind, int count) {
    const optimizer_list list({tensor(has_master, kind)});
    for (int i = 0; i < count; ++i) {
      ++steps;
      for (std::size_t k = 0; k < gradient.size(); ++k) {
        gradient[k] = static_cast<float>((steps * 31 + k * 7) % 101) / 50 - 1;
      }
      optimizer_step(list, {&settings, 1}, {.applied_steps = steps});
    }
  }
};

}  // namespace samebits
