// Optimizer steps: constants, refusals, laws between weight modes.
#include "samebits/optimizer.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "numerics/update/constants.hpp"
#include "numerics/update/lamb.hpp"
#include "numerics/update/lion.hpp"
#include "numerics/update/stored.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

namespace n = numerics;
using enum stored_format;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }

TEST(step_constants, have_the_steps_of_the_contract) {
  const optimizer_settings s = {.learning_rate = 1e-3, .weight_decay = 0.1};
  const n::update_constants c = n::constants_of(s, bits(1e-3), 3, bits(0.5f));
  const double b1 = static_cast<double>(0.9f);
  const double b2 = static_cast<double>(0.999f);
  const double c1 = 1 - b1 * (b1 * b1);
  const double c2 = 1 - b2 * (b2 * b2);
  EXPECT_EQ(c.grad_mul, bits(0.5f));
  EXPECT_EQ(c.b1, bits(0.9f));
  EXPECT_EQ(c.w1, bits(1 - 0.9f));
  EXPECT_EQ(c.b2, bits(0.999f));
  EXPECT_EQ(c.w2, bits(1 - 0.999f));
  EXPECT_EQ(c.rate, bits(static_cast<float>(1e-3 / c1)));
  EXPECT_EQ(c.root, bits(static_cast<float>(std::sqrt(c2))));
  EXPECT_EQ(c.epsilon, bits(1e-8f));
  EXPECT_EQ(c.l2, bits(0.1f));
  EXPECT_EQ(c.keep, bits(static_cast<float>(1 - 1e-3 * 0.1)));
  EXPECT_EQ(c.loss, bits(static_cast<float>(1e-3 * 0.1)));
  EXPECT_TRUE(c.decays);
  EXPECT_FALSE(c.first_step);
  EXPECT_TRUE(n::constants_of(s, bits(1e-3), 1, bits(1.0f)).first_step);
  EXPECT_FALSE(n::constants_of({}, bits(1e-3), 1, bits(1.0f)).decays);
}

TEST(step_constants, decay_above_one_is_negative) {
  const optimizer_settings s = {.learning_rate = 4, .weight_decay = 0.5};
  EXPECT_EQ(n::constants_of(s, bits(4.0), 1, bits(1.0f)).keep, bits(-1.0f));
}

TEST(rules, lion_moves_by_signs) {
  EXPECT_EQ(n::sign_of(0u), 0u);
  EXPECT_EQ(n::sign_of(0x80000000u), 0u);
  EXPECT_EQ(n::sign_of(1u), bits(1.0f));
  EXPECT_EQ(n::sign_of(0x80000001u), bits(-1.0f));
  EXPECT_EQ(n::sign_of(0x7F800000u), bits(1.0f));
  EXPECT_EQ(n::sign_of(0xFF800000u), bits(-1.0f));
  EXPECT_EQ(n::sign_of(0xFF800001u), 0xFF800001u);
}

TEST(rules, lamb_uses_norms_that_are_above_zero_and_finite) {
  const optimizer_settings s = {.rule = update_rule::lamb};
  const n::update_constants c = n::constants_of(s, bits(0.5), 1, bits(1.0f));
  const std::uint64_t inf = n::binary64::inf;
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), bits(4.0)), bits(0.375f));
  EXPECT_EQ(n::lamb_factor(c, 0, bits(4.0)), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), 0), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, inf, bits(4.0)), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), inf), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, n::binary64::nan, bits(4.0)), bits(0.5f));
  EXPECT_EQ(n::lamb_factor(c, bits(3.0), n::binary64::nan), bits(0.5f));
}

TEST(stored, blocks_of_zeros_have_the_scale_one) {
  for (const stored_format f : {fp16_scaled, e4m3_scaled, e5m2_scaled}) {
    const n::tile_scale s = n::block_scale(f, 0);
    EXPECT_EQ(s.dequantization_scale, n::binary32::one);
    EXPECT_EQ(s.factor, n::binary32::one);
  }
}

TEST(stored, fp16_blocks_have_powers_of_two_as_scales) {
  const auto scale = [](float amax) { return n::block_scale(fp16_scaled, bits(amax)); };
  EXPECT_EQ(scale(1.5f).dequantization_scale, bits(0x1p-14f));
  EXPECT_EQ(scale(1.5f).factor, bits(0x1p14f));
  EXPECT_EQ(scale(0x1p-112f).dequantization_scale, bits(0x1p-126f));
  EXPECT_EQ(scale(0x1p-111f).dequantization_scale, bits(0x1p-125f));
  EXPECT_EQ(scale(0x1p-140f).dequantization_scale, bits(0x1p-126f));
  EXPECT_EQ(scale(0x1p-140f).factor, bits(0x1p126f));
  EXPECT_EQ(n::block_scale(fp16_scaled, n::binary32::nan).dequantization_scale, bits(0x1p114f));
}

TEST(stored, split_weights_join_to_the_same_number) {
  for (std::uint64_t x = 0; x < (1u << 31) + (std::uint64_t{1} << 31); x += 65521) {
    const auto word = static_cast<std::uint32_t>(x);
    const auto halves = n::split_weight(word);
    if (n::binary32::is_nan(word)) {
      EXPECT_EQ(halves.high, 0x7FFFu);
      EXPECT_TRUE(n::binary32::is_nan(n::joined_weight(halves)));
    } else {
      ASSERT_EQ(n::joined_weight(halves), word);
    }
  }
  EXPECT_EQ(n::split_weight<std::uint32_t>(0x3F808000).high, 0x3F81u);  // a tie goes away from zero
  EXPECT_EQ(n::split_weight<std::uint32_t>(0x7FFFFFFF).high, 0x7FFFu);
  EXPECT_EQ(n::split_weight<std::uint32_t>(0xFFC00000).high, 0x7FFFu);
}

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
    optimizer_tensor t = {.weights = {weights.data(), bf16_nearest},
                          .gradient = {gradient.data(), fp32},
                          .states = {{{first.data(), fp32}, {second.data(), fp32}}},
                          .count = 1000};
    if (has_master) t.master = {master.data(), fp32};
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

TEST(optimizer, split_weights_follow_master_weights) {
  bf16_training with_master;
  bf16_training with_halves;
  with_master.train(true, low_part::none, 30);
  with_halves.train(false, low_part::split, 30);
  for (std::size_t i = 0; i < 1000; ++i) {
    const n::two_halves<std::uint32_t> x = {with_halves.weights[i], with_halves.low[i]};
    ASSERT_EQ(n::joined_weight(x), bits(with_master.master[i])) << i;
  }
  EXPECT_EQ(with_halves.first, with_master.first);
}

TEST(optimizer, resumed_training_has_the_bits_of_uninterrupted_training) {
  bf16_training whole;
  whole.train(false, low_part::kahan, 12);
  bf16_training first;
  first.train(false, low_part::kahan, 5);
  bf16_training resumed = first;  // all state is in the arrays and the step count
  resumed.train(false, low_part::kahan, 7);
  EXPECT_EQ(resumed.weights, whole.weights);
  EXPECT_EQ(resumed.low, whole.low);
  EXPECT_EQ(resumed.second, whole.second);
}

TEST(optimizer, checkpoints_restore_states_settings_and_counters) {
  bf16_training whole;
  whole.train(true, low_part::none, 12);
  bf16_training first;
  first.train(true, low_part::none, 5);
  const std::vector<std::byte> bytes =
      save(optimizer_list({first.tensor(true, low_part::none)}),
           {.groups = {first.settings}, .applied_steps = first.steps, .seed = 7});
  bf16_training resumed;
  resumed.weights = first.weights;
  const optimizer_checkpoint read =
      load_optimizer(optimizer_list({resumed.tensor(true, low_part::none)}), bytes);
  EXPECT_EQ(read.groups, std::vector{first.settings});
  EXPECT_EQ(read.seed, 7u);
  resumed.steps = read.applied_steps;
  resumed.train(true, low_part::none, 7);
  EXPECT_EQ(resumed.master, whole.master);
  EXPECT_EQ(resumed.weights, whole.weights);
}

TEST(optimizer, checkpoints_of_other_tensors_are_refused) {
  bf16_training training;
  optimizer_tensor tensor = training.tensor(true, low_part::none);
  std::vector<std::byte> bytes = save(optimizer_list({tensor}), {.groups = {training.settings}});
  const auto refused = [](optimizer_tensor t, std::vector<std::byte> from) -> std::string {
    try {
      load_optimizer(optimizer_list({t}), from);
    } catch (const invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  tensor.count = 999;
  EXPECT_EQ(refused(tensor, bytes),
            "tensors[0] '': sizes, formats, stream or block differ from the saved ones");
  tensor.count = 1000;
  tensor.name = "fc2";
  EXPECT_EQ(refused(tensor, bytes), "tensors[0] 'fc2': the saved tensor is ''");
  tensor.name = "";
  bytes.pop_back();
  EXPECT_EQ(refused(tensor, bytes), "bytes: hold 11999 bytes of arrays, the tensors need 12000");
  bytes.resize(100);
  EXPECT_EQ(refused(tensor, bytes), "bytes: end too early");
  bytes[15] = std::byte{'2'};
  EXPECT_EQ(refused(tensor, bytes),
            "bytes: are no checkpoint of an optimizer, or of an unknown version");
}

TEST(optimizer, decision_gives_step_count_and_gradient_factor) {
  bf16_training by_hand;
  bf16_training by_decision;
  by_hand.train(true, low_part::none, 1);
  by_decision.train(true, low_part::none, 1);
  step_report decision;
  decision.applied = true;
  decision.applied_steps = 9;
  decision.grad_mul = 0.25f;
  optimizer_step(optimizer_list({by_hand.tensor(true, low_part::none)}), {&by_hand.settings, 1},
                 {.applied_steps = 9, .grad_mul = 0.25f});
  optimizer_step(optimizer_list({by_decision.tensor(true, low_part::none)}),
                 {&by_decision.settings, 1}, {.decision = &decision});
  EXPECT_EQ(by_hand.master, by_decision.master);
  EXPECT_EQ(by_hand.weights, by_decision.weights);
}

TEST(optimizer, learning_rates_replace_those_of_the_settings) {
  bf16_training a;
  bf16_training b;
  a.settings.learning_rate = static_cast<double>(3e-4f);
  a.train(true, low_part::none, 1);
  const float rate = 3e-4f;
  for (std::size_t k = 0; k < b.gradient.size(); ++k) b.gradient[k] = a.gradient[k];
  optimizer_step(optimizer_list({b.tensor(true, low_part::none)}), {&b.settings, 1},
                 {.learning_rates = &rate});
  EXPECT_EQ(a.master, b.master);
}

TEST(random_streams, of_purposes_tensors_and_steps_differ) {
  EXPECT_EQ(random_stream_number(stream_purpose::second_state, 5, 7), 0x0300000500000007u);
  EXPECT_EQ(random_stream_number(stream_purpose::weights, 0xFFFFFF, 0xFFFFFFFF),
            0x01FFFFFFFFFFFFFFu);
  EXPECT_EQ(random_stream_number(stream_purpose::caller, 0, std::uint64_t{1} << 32), 0u);
}

/// The text with which a list or step is refused.
std::string refusal(
    const std::function<void(optimizer_tensor&, optimizer_settings&, step_input&)>& change) {
  bf16_training memory;
  optimizer_tensor t = memory.tensor(true, low_part::none);
  t.name = "fc1";
  step_input input;
  change(t, memory.settings, input);
  try {
    optimizer_step(optimizer_list({t}), {&memory.settings, 1}, input);
  } catch (const invalid_argument& error) {
    return error.what();
  }
  return "";
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
  EXPECT_EQ(refusal([](tensor, settings s, input) { s.epsilon = 1e-60; }),
            "groups[0].epsilon: must be above 0 and finite after rounding to binary32");
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
      try {
        optimizer_step(optimizer_list({memory.tensor(true, low_part::none)}), groups,
                       {.decision = decided ? &decision : nullptr, .learning_rates = rates});
        ADD_FAILURE() << "accepted " << rate;
      } catch (const invalid_argument& error) {
        EXPECT_STREQ(error.what(), "input.learning_rates[1]: must be a finite number >= 0");
      }
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

}  // namespace
}  // namespace samebits
