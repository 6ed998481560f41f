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

void refused(const std::string& text, const auto& change) { EXPECT_EQ(refusal(change), text); }
void tensor_refused(const std::string& text, const auto& change) {
  refused("tensors[0] 'fc1': " + text, change);
}

TEST(optimizer, refuses_tensors) {
  tensor_refused("count: must be at least 0", [](auto& t, auto&, auto&) { t.count = -1; });
  tensor_refused("count: must be at most 2^48",
                 [](auto& t, auto&, auto&) { t.count = (std::int64_t{1} << 48) + 1; });
  tensor_refused("count: must be at most 2^48",
                 [](auto& t, auto&, auto&) { t.count = std::numeric_limits<std::int64_t>::max(); });
  tensor_refused("weights.codes: must not be null",
                 [](auto& t, auto&, auto&) { t.weights.codes = nullptr; });
  tensor_refused("gradient.codes: must be aligned to 4 bytes", [](auto& t, auto&, auto&) {
    t.gradient.codes = static_cast<const std::byte*>(t.gradient.codes) + 1;
  });
  tensor_refused("block: must be 128 or 256", [](auto& t, auto&, auto&) { t.block = 64; });
  tensor_refused("stream: must be below 2^24", [](auto& t, auto&, auto&) { t.stream = 1u << 24; });
  tensor_refused(
      "weights.format: with master weights must be bf16_nearest, fp16_nearest, e4m3_scaled or "
      "e5m2_scaled",
      [](auto& t, auto&, auto&) { t.weights.format = fp32; });
  refused("tensors[0] 'fc1': master.codes and tensors[0] 'fc1': states[0].codes overlap",
          [](auto& t, auto&, auto&) { t.master.codes = t.states[0].codes; });
  tensor_refused("the rule needs 2 states, got 1", [](auto& t, auto&, auto&) { t.states[1] = {}; });
  for (const stored_format f : {fp16_nearest, fp16_stochastic}) {
    tensor_refused(
        "states[1].format: fp16_nearest and fp16_stochastic have no numbers between 0 and 2^-24, "
        "so the step of a small second moment would be divided by eps alone; use fp16_scaled or "
        "bf16_nearest",
        [f](auto& t, auto&, auto&) { t.states[1].format = f; });
    refused("", [f](auto& t, auto&, auto&) { t.states[0].format = f; });
  }
  refused("groups: must have settings for group 1, got 1 groups",
          [](auto& t, auto&, auto&) { t.group = 1; });
  tensor_refused("first_index: must be a multiple of block, because an array has scales",
                 [](auto& t, auto&, auto&) {
                   t.states[0] = {t.low, e4m3_scaled, reinterpret_cast<float*>(t.low)};
                   t.first_index = 100;
                 });
}

TEST(optimizer, refuses_arrays_without_a_format) {
  tensor_refused("low: must be null, because low_kind is none",
                 [](auto& t, auto&, auto&) { t.low = t.weights.codes; });
  tensor_refused("master: must be null, because its format is none",
                 [](auto& t, auto&, auto&) { t.master.format = none; });
  tensor_refused("states[0]: must be null, because its format is none",
                 [](auto& t, auto&, auto&) { t.states[0].format = none; });
  tensor_refused("states[1]: must be null, because its format is none",
                 [](auto& t, auto&, auto&) { t.states[1].format = none; });
  float scale = 1;
  tensor_refused("states[1]: must be null, because its format is none", [&](auto& t, auto&, auto&) {
    t.states[1] = {nullptr, none, &scale};
  });
}

TEST(optimizer, refuses_settings) {
  refused("groups[0].beta1: must be in [0, 1)", [](auto&, auto& s, auto&) { s.beta1 = 1; });
  refused("groups[0].beta2: must be below 1 after rounding to binary32",
          [](auto&, auto& s, auto&) { s.beta2 = 0.99999999; });
  for (const double x : {-1e-8, 1e39, std::numeric_limits<double>::quiet_NaN()}) {
    refused("groups[0].eps: must be a number >= 0 that is finite after rounding to binary32",
            [x](auto&, auto& s, auto&) { s.eps = x; });
  }
  for (const double x : {0.0, -0.0, 1e-60}) {
    refused("", [x](auto&, auto& s, auto&) { s.eps = x; });
  }
  refused("groups[0].momentum: must be 0 or in [2^-126, 1)", [](auto&, auto& s, auto&) {
    s.rule = update_rule::sgd;
    s.momentum = 1e-310;
  });
  refused("groups[0].nesterov: needs momentum > 0 and dampening = 0", [](auto&, auto& s, auto&) {
    s.rule = update_rule::sgd;
    s.nesterov = true;
  });
  refused("groups[0].learning_rate: must be a finite number >= 0",
          [](auto&, auto& s, auto&) { s.learning_rate = -1e-3; });
  refused("groups[0].profile: the rule has no such profile (see has_profile())",
          [](auto&, auto& s, auto&) {
            s.rule = update_rule::lion;
            s.profile = update_profile::apex_te;
          });
  refused(
      "groups[0].beta1: must be above 0.5 with profile torch_foreach, because PyTorch takes other "
      "steps below",
      [](auto&, auto& s, auto&) {
        s.profile = update_profile::torch_foreach;
        s.beta1 = 0.5;
      });
  tensor_refused("first_index: must be 0 with rule lamb, which needs whole parameters",
                 [](auto& t, auto& s, auto&) {
                   s.rule = update_rule::lamb;
                   t.first_index = 1;
                 });
  refused("input.applied_steps: must count this step, so it is at least 1",
          [](auto&, auto&, auto& i) { i.applied_steps = 0; });
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
    refused("", [&](auto&, auto&, auto& i) { i.learning_rates = &rate; });
  }
}

TEST(optimizer, refuses_applied_decisions_without_a_step_count) {
  step_report decision;
  const auto text = [&] { return refusal([&](auto&, auto&, auto& i) { i.decision = &decision; }); };
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

void store_refused(const std::string& text, const auto& change) {
  EXPECT_EQ(refusal_of_store(change), text);
}

TEST(optimizer, refuses_stores) {
  store_refused("", [](auto&, auto&, auto&) {});
  store_refused("values: format must be fp32, bf16 or fp16, got e4m3",
                [](auto& v, auto&, auto&) { v.format = format_id::e4m3; });
  store_refused("values: must have no gaps between elements", [](auto& v, auto&, auto&) {
    v.cols = 100;
    v.col_stride = 2;
  });
  store_refused("to.format: must be a format of weights or states",
                [](auto&, auto& to, auto&) { to.format = e4m3_tensor; });
  store_refused("to.format: must be a value of samebits::stored_format, got 99",
                [](auto&, auto& to, auto&) { to.format = stored_format{99}; });
  store_refused("to.codes: must not be null", [](auto&, auto& to, auto&) { to.codes = nullptr; });
  store_refused("to.scales: must not be null", [](auto&, auto& to, auto&) { to.scales = nullptr; });
  store_refused("to.codes: must be aligned to 2 bytes",
                [](auto&, auto& to, auto&) { to.codes = static_cast<std::byte*>(to.codes) + 1; });
  store_refused("to.codes overlaps values",
                [](auto& v, auto& to, auto&) { to.codes = const_cast<void*>(v.data); });
  store_refused("options.block: must be 128 or 256", [](auto&, auto&, auto& o) { o.block = 64; });
  store_refused("options.first_index: must be a multiple of block, because the array has scales",
                [](auto&, auto&, auto& o) { o.first_index = 100; });
  store_refused("options.low: needs codes in bf16_nearest",
                [](auto&, auto&, auto& o) { o.low_kind = low_part::split; });
  store_refused("options.low: must be null, because low_kind is none",
                [](auto&, auto& to, auto&) { to.format = fp32; });
  store_refused("options.low: must not be null", [](auto&, auto& to, auto& o) {
    to.format = bf16_nearest;
    o.low_kind = low_part::kahan;
    o.low = nullptr;
  });
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
