// Optimizer steps: the texts with which lists, settings and inputs are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/optimizer.hpp"
#include "support/refusal.hpp"
#include "unit/bf16_training.hpp"

namespace samebits {
namespace {

using support::refusal_of;

using enum stored_format;

/// The text with which a list or step is refused.
std::string refusal(
    const std::function<void(optimizer_tensor&, optimizer_settings&, step_input&)>& change) {
  bf16_training memory;
  optimizer_tensor t = memory.tensor(true, low_part::none);
  t.name = "fc1";
  step_input input;
  change(t, memory.settings, input);
  return refusal_of([&] { optimizer_step(optimizer_list({t}), {&memory.settings, 1}, input); });
}

TEST(optimizer, refuses_tensors) {
  using tensor = optimizer_tensor&;
  using settings = optimizer_settings&;
  using input = step_input&;
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.count = -1; }),
            "tensors[0] 'fc1': count: must be at least 0");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.count = (std::int64_t{1} << 48) + 1; }),
            "tensors[0] 'fc1': count: must be at most 2^48");
  EXPECT_EQ(refusal([](tensor t, settings, input) {
              t.count = std::numeric_limits<std::int64_t>::max();
            }),
            "tensors[0] 'fc1': count: must be at most 2^48");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.weights.codes = nullptr; }),
            "tensors[0] 'fc1': weights.codes: must not be null");
  EXPECT_EQ(refusal([](tensor t, settings, input) {
              t.gradient.codes = static_cast<const std::byte*>(t.gradient.codes) + 1;
            }),
            "tensors[0] 'fc1': gradient.codes: must be aligned to 4 bytes");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.block = 64; }),
            "tensors[0] 'fc1': block: must be 128 or 256");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.stream = 1u << 24; }),
            "tensors[0] 'fc1': stream: must be below 2^24");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.weights.format = fp32; }),
            "tensors[0] 'fc1': weights.format: with master weights must be bf16_nearest, "
            "fp16_nearest, e4m3_scaled or e5m2_scaled");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.master.codes = t.states[0].codes; }),
            "tensors[0] 'fc1': master.codes and tensors[0] 'fc1': states[0].codes overlap");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.states[1] = {}; }),
            "tensors[0] 'fc1': the rule needs 2 states, got 1");
  for (const stored_format f : {fp16_nearest, fp16_stochastic}) {
    EXPECT_EQ(
        refusal([f](tensor t, settings, input) { t.states[1].format = f; }),
        "tensors[0] 'fc1': states[1].format: fp16_nearest and fp16_stochastic have no numbers "
        "between 0 and 2^-24, so the step of a small second moment would be divided by eps "
        "alone; use fp16_scaled or bf16_nearest");
    EXPECT_EQ(refusal([f](tensor t, settings, input) { t.states[0].format = f; }), "");
  }
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.group = 1; }),
            "groups: must have settings for group 1, got 1 groups");
  EXPECT_EQ(refusal([](tensor t, settings, input) {
              t.states[0] = {t.low, e4m3_scaled, reinterpret_cast<float*>(t.low)};
              t.first_index = 100;
            }),
            "tensors[0] 'fc1': first_index: must be a multiple of block, because an array has "
            "scales");
}

TEST(optimizer, refuses_arrays_without_a_format) {
  using tensor = optimizer_tensor&;
  using settings = optimizer_settings&;
  using input = step_input&;
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.low = t.weights.codes; }),
            "tensors[0] 'fc1': low: must be null, because low_kind is none");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.master.format = none; }),
            "tensors[0] 'fc1': master: must be null, because its format is none");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.states[0].format = none; }),
            "tensors[0] 'fc1': states[0]: must be null, because its format is none");
  EXPECT_EQ(refusal([](tensor t, settings, input) { t.states[1].format = none; }),
            "tensors[0] 'fc1': states[1]: must be null, because its format is none");
  float scale = 1;
  EXPECT_EQ(refusal([&](tensor t, settings, input) {
              t.states[1] = {nullptr, none, &scale};
            }),
            "tensors[0] 'fc1': states[1]: must be null, because its format is none");
}

TEST(optimizer, refuses_settings) {
  using tensor = optimizer_tensor&;
  using settings = optimizer_settings&;
  using input = step_input&;
  EXPECT_EQ(refusal([](tensor, settings s, input) { s.beta1 = 1; }),
            "groups[0].beta1: must be in [0, 1)");
  EXPECT_EQ(refusal([](tensor, settings s, input) { s.beta2 = 0.99999999; }),
            "groups[0].beta2: must be below 1 after rounding to binary32");
  for (const double x : {-1e-8, 1e39, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(refusal([x](tensor, settings s, input) { s.eps = x; }),
              "groups[0].eps: must be a number >= 0 that is finite after rounding to binary32");
  }
  for (const double x : {0.0, -0.0, 1e-60}) {
    EXPECT_EQ(refusal([x](tensor, settings s, input) { s.eps = x; }), "");
  }
  EXPECT_EQ(refusal([](tensor, settings s, input) {
              s.rule = update_rule::sgd;
              s.momentum = 1e-310;
            }),
            "groups[0].momentum: must be 0 or in [2^-126, 1)");
  EXPECT_EQ(refusal([](tensor, settings s, input) {
              s.rule = update_rule::sgd;
              s.nesterov = true;
            }),
            "groups[0].nesterov: needs momentum > 0 and dampening = 0");
  EXPECT_EQ(refusal([](tensor, settings s, input) { s.learning_rate = -1e-3; }),
            "groups[0].learning_rate: must be a finite number >= 0");
  EXPECT_EQ(refusal([](tensor, settings s, input) {
              s.rule = update_rule::lion;
              s.profile = update_profile::apex_te;
            }),
            "groups[0].profile: the rule has no such profile (see has_profile())");
  EXPECT_EQ(refusal([](tensor, settings s, input) {
              s.profile = update_profile::torch_foreach;
              s.beta1 = 0.5;
            }),
            "groups[0].beta1: must be above 0.5 with profile torch_foreach, because PyTorch takes "
            "other steps below");
  EXPECT_EQ(
      refusal([](tensor t, settings s, input) {
        s.rule = update_rule::lamb;
        t.first_index = 1;
      }),
      "tensors[0] 'fc1': first_index: must be 0 with rule lamb, which needs whole parameters");
  EXPECT_EQ(refusal([](tensor, settings, input i) { i.applied_steps = 0; }),
            "input.applied_steps: must count this step, so it is at least 1");
}

TEST(optimizer, refuses_learning_rates_in_host_memory) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float rate :
       {std::nanf(""), -std::nanf(""), infinity, -infinity, -1e-3f, -0x1p-149f}) {
    for (const bool decided : {false, true}) {
      const float rates[] = {0.5f, rate};
      step_report decision;
      decision.applied_steps = 1;
      bf16_training memory;
      const optimizer_settings groups[] = {memory.settings, memory.settings};
      const auto step = [&] {
        optimizer_step(optimizer_list({memory.tensor(true, low_part::none)}), groups,
                       {.decision = decided ? &decision : nullptr, .learning_rates = rates});
      };
      EXPECT_EQ(refusal_of(step), "input.learning_rates[1]: must be a finite number >= 0") << rate;
      EXPECT_EQ(memory.master, bf16_training().master);
    }
  }
  for (const float rate : {0.0f, -0.0f, 0x1p-149f, std::numeric_limits<float>::max()}) {
    EXPECT_EQ(refusal([&](optimizer_tensor&, optimizer_settings&, step_input& i) {
                i.learning_rates = &rate;
              }),
              "");
  }
}

TEST(optimizer, refuses_applied_decisions_without_a_step_count) {
  step_report decision;
  const auto text = [&] {
    return refusal(
        [&](optimizer_tensor&, optimizer_settings&, step_input& i) { i.decision = &decision; });
  };
  decision.applied = true;
  EXPECT_EQ(
      text(),
      "input.decision.applied_steps: must count this step, so it is at least 1 if the step is "
      "applied");
  decision.applied_steps = 1;
  EXPECT_EQ(text(), "");
  decision.applied = false;
  decision.applied_steps = 0;
  EXPECT_EQ(text(), "");
}

TEST(optimizer, torch_profiles_need_one_format) {
  std::vector<float> gradient(1000);
  std::vector<std::uint16_t> weights(1000);
  std::vector<float> first(1000), second(1000);
  const optimizer_settings s = {.profile = update_profile::torch_fused};
  const optimizer_list list({{.weights = {weights.data(), bf16_nearest},
                              .gradient = {gradient.data(), fp32},
                              .states = {{{first.data(), fp32}, {second.data(), fp32}}},
                              .count = 1000}});
  EXPECT_THROW(optimizer_step(list, {&s, 1}), invalid_argument);
}

/// The text with which store() refuses 300 numbers in fp32.
std::string refusal_of_store(
    const std::function<void(const_matrix_view&, stored_array&, store_options&)>& change) {
  std::vector<float> values(300), scales(3);
  std::vector<std::uint16_t> codes(300), low(300);
  const_matrix_view view = view_of(values);
  stored_array to = {codes.data(), fp16_scaled, scales.data()};
  store_options options = {.low = low.data()};
  change(view, to, options);
  if (options.low_kind == low_part::none && to.format != fp32) options.low = nullptr;
  return refusal_of([&] { store(view, to, options); });
}

TEST(optimizer, refuses_stores) {
  using view = const_matrix_view&;
  using array = stored_array&;
  using options = store_options&;
  EXPECT_EQ(refusal_of_store([](view, array, options) {}), "");
  EXPECT_EQ(refusal_of_store([](view v, array, options) { v.format = format_id::e4m3; }),
            "values: format must be fp32, bf16 or fp16, got e4m3");
  EXPECT_EQ(refusal_of_store([](view v, array, options) {
              v.cols = 100;
              v.col_stride = 2;
            }),
            "values: must have no gaps between elements");
  EXPECT_EQ(refusal_of_store([](view, array to, options) { to.format = e4m3_tensor; }),
            "to.format: must be a format of weights or states");
  EXPECT_EQ(refusal_of_store([](view, array to, options) { to.format = stored_format{99}; }),
            "to.format: must be a value of samebits::stored_format, got 99");
  EXPECT_EQ(refusal_of_store([](view, array to, options) { to.codes = nullptr; }),
            "to.codes: must not be null");
  EXPECT_EQ(refusal_of_store([](view, array to, options) { to.scales = nullptr; }),
            "to.scales: must not be null");
  EXPECT_EQ(refusal_of_store(
                [](view, array to, options) { to.codes = static_cast<std::byte*>(to.codes) + 1; }),
            "to.codes: must be aligned to 2 bytes");
  EXPECT_EQ(
      refusal_of_store([](view v, array to, options) { to.codes = const_cast<void*>(v.data); }),
      "to.codes overlaps values");
  EXPECT_EQ(refusal_of_store([](view, array, options o) { o.block = 64; }),
            "options.block: must be 128 or 256");
  EXPECT_EQ(refusal_of_store([](view, array, options o) { o.first_index = 100; }),
            "options.first_index: must be a multiple of block, because the array has scales");
  EXPECT_EQ(refusal_of_store([](view, array, options o) { o.low_kind = low_part::split; }),
            "options.low: needs codes in bf16_nearest");
  EXPECT_EQ(refusal_of_store([](view, array to, options) { to.format = fp32; }),
            "options.low: must be null, because low_kind is none");
  EXPECT_EQ(refusal_of_store([](view, array to, options o) {
              to.format = bf16_nearest;
              o.low_kind = low_part::kahan;
              o.low = nullptr;
            }),
            "options.low: must not be null");
}

TEST(optimizer, refuses_loads) {
  std::vector<std::uint16_t> codes(300);
  const matrix_view out = view_of_codes(format_id::fp16, codes.data() + 99, 1, 100);
  EXPECT_EQ(refusal_of([&] {
              load({codes.data(), bf16_nearest}, out);
            }),
            "from.codes overlaps out");
}

}  // namespace
}  // namespace samebits
