// The loss scaler: what each call does, and what it says when it comes in the wrong order.
#include "samebits/loss_scaler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using support::expect_refusal;

constexpr float infinity = std::numeric_limits<float>::infinity();

struct model {
  std::vector<float> gradient = {65536.0f, -131072.0f};
  [[nodiscard]] std::vector<matrix_view> gradients() { return {view_of(gradient)}; }
};

TEST(LossScaler, AStep) {
  loss_scaler scaler;
  model m;
  int steps = 0;
  EXPECT_EQ(scaler.get_scale(), 65536);
  EXPECT_EQ(scaler.scale(0.75f), 49152.0f);
  const unscale_report report = scaler.unscale(m.gradients());
  EXPECT_EQ(report.elements, 2u);
  EXPECT_EQ(m.gradient, (std::vector<float>{1.0f, -2.0f}));
  EXPECT_TRUE(scaler.step([&] { ++steps; }));
  const step_decision decision = scaler.update();
  EXPECT_TRUE(decision.apply);
  EXPECT_EQ(steps, 1);
  EXPECT_EQ(scaler.applied_steps(), 1u);
  EXPECT_EQ(scaler.updates(), 1u);
}

TEST(LossScaler, GradientsThatAreNotFiniteSkipTheStep) {
  loss_scaler scaler(torch_scaling{});
  model m;
  m.gradient = {1.0f, infinity};
  int steps = 0;
  EXPECT_FALSE(scaler.step(m.gradients(), [&] { ++steps; }));  // unscales by itself
  EXPECT_EQ(scaler.update().cause, step_cause::overflow);
  EXPECT_EQ(steps, 0);
  EXPECT_EQ(scaler.get_scale(), 32768);
  EXPECT_EQ(scaler.applied_steps(), 0u);
}

TEST(LossScaler, EveryPolicyRuns) {
  for (int i = 0; i < enum_count<scaling_policy>; ++i) {
    loss_scaler scaler(default_settings(static_cast<scaling_policy>(i)));
    const double before = scaler.get_scale();
    for (int step = 0; step < 3; ++step) {
      scaler.observe({.nonfinite = true});
      EXPECT_FALSE(scaler.step([] { FAIL(); }));
      scaler.update();
    }
    EXPECT_LT(scaler.get_scale(), before) << name(static_cast<scaling_policy>(i));
  }
}

TEST(LossScaler, ALossThatIsNotFiniteExplainsTheGradients) {
  loss_scaler scaler;
  for (const float loss : {infinity, std::nanf("")}) {
    for (int i = 0; i < 10; ++i) {
      scaler.scale(1.0f);
      EXPECT_FALSE(std::isfinite(scaler.scale(loss)));
      scaler.observe({.nonfinite = true});
      EXPECT_EQ(scaler.update().cause, step_cause::loss);
    }
  }
  EXPECT_EQ(scaler.get_scale(), 65536);
  scaler.scale(1.0f);  // forgotten with the update
  scaler.observe({.nonfinite = true});
  EXPECT_EQ(scaler.update().cause, step_cause::nonfinite);
}

TEST(LossScaler, ScaledLossesAreRoundedOnce) {
  loss_scaler scaler(torch_scaling{.init_scale = 50000});
  EXPECT_EQ(scaler.scale(0.3f), 0.3f * 50000.0f);
  EXPECT_EQ(scaler.scale(-1e-40f), -1e-40f * 50000.0f);
  EXPECT_EQ(scaler.scale(3e38f), infinity);
  EXPECT_EQ(scaler.inverse_scale(), 1.0f / 50000.0f);
}

TEST(LossScaler, OptimizersStepOnTheirOwnAndShareTheScale) {
  loss_scaler scaler(torch_scaling{});
  model generator, critic;
  critic.gradient = {std::nanf("")};
  scaler.unscale(generator.gradients(), "generator");
  scaler.unscale(critic.gradients(), "critic");
  int steps = 0;
  EXPECT_TRUE(scaler.step([&] { ++steps; }, "generator"));
  EXPECT_FALSE(scaler.step([&] { ++steps; }, "critic"));
  EXPECT_EQ(scaler.update().cause, step_cause::nan);
  EXPECT_EQ(scaler.get_scale(), 32768);
  EXPECT_EQ(scaler.applied_steps("generator"), 1u);
  EXPECT_EQ(scaler.applied_steps("critic"), 0u);
  EXPECT_EQ(scaler.applied_steps("nobody"), 0u);
  // One of them may sit out an iteration.
  scaler.observe({}, "critic");
  EXPECT_TRUE(scaler.step([&] { ++steps; }, "critic"));
  EXPECT_TRUE(scaler.update().apply);
  EXPECT_EQ(steps, 2);
}

TEST(LossScaler, TheLargestGradientIsThatOfAllOptimizersOrNone) {
  const native_scaling settings = {.growth_interval = 1, .headroom_bits = 1};
  loss_scaler held(settings);
  held.observe({.amax = numerics::power_of_two(3)}, "a");
  held.observe({.amax = numerics::power_of_two(14)}, "b");
  EXPECT_EQ(held.update().change, scale_change::kept);  // b has no bit to spare
  loss_scaler grown(settings);
  grown.observe({.amax = numerics::power_of_two(14)}, "a");
  grown.observe({}, "b");
  EXPECT_EQ(grown.update().change, scale_change::grown);  // it is not known to be the largest
}

TEST(LossScaler, NativeSkipsWhatUnscalingWouldOverflow) {
  loss_scaler scaler(native_scaling{.init_exponent = -4});
  std::vector<fp16> gradient = {fp16(8192.0f)};
  const matrix_view views[] = {view_of(gradient)};
  EXPECT_EQ(scaler.unscale(views).overflowed, 1u);
  EXPECT_FALSE(scaler.step([] { FAIL(); }));
  EXPECT_EQ(scaler.update().cause, step_cause::unscaled);
  EXPECT_EQ(scaler.get_scale(), 0.0625);
}

TEST(LossScaler, OrderOfCalls) {
  loss_scaler scaler;
  model m;
  using order = call_order_error;
  expect_refusal<order>("update(): no gradients", [&] { scaler.update(); });
  expect_refusal<order>("step(): the gradients have not been", [&] { scaler.step([] {}); });
  expect_refusal<order>("of optimizer 'd'", [&] { scaler.step([] {}, "d"); });
  scaler.unscale(m.gradients());
  const std::vector<float> unscaled = m.gradient;
  expect_refusal<order>("unscale(): the gradients have been",
                        [&] { scaler.unscale(m.gradients()); });
  expect_refusal<order>("observe(): the gradients", [&] { scaler.observe({}); });
  EXPECT_EQ(m.gradient, unscaled);
  expect_refusal<order>("save()", [&] { static_cast<void>(scaler.save()); });
  scaler.step([] {});
  expect_refusal<order>("step(): called twice", [&] { scaler.step([] {}); });
  expect_refusal<order>("called after step()", [&] { scaler.unscale(m.gradients()); });
  scaler.update();
  scaler.unscale(m.gradients());
  EXPECT_TRUE(scaler.step([] {}));
  EXPECT_THROW(scaler.observe({}, "two\nlines"), invalid_argument);
}

TEST(LossScaler, AFailedUnscaleOrStepCanBeRepeated) {
  loss_scaler scaler;
  model m;
  matrix_view wrong = view_of(m.gradient);
  wrong.format = format_id::e4m3;
  EXPECT_THROW(scaler.unscale(std::vector{wrong}), invalid_argument);
  scaler.unscale(m.gradients());
  EXPECT_THROW(scaler.step([] { throw std::runtime_error("disk full"); }), std::runtime_error);
  EXPECT_EQ(scaler.applied_steps(), 0u);
  EXPECT_TRUE(scaler.step([] {}));
  EXPECT_EQ(scaler.applied_steps(), 1u);
}

TEST(LossScaler, TheEndOfARun) {
  loss_scaler scaler(deepspeed_scaling{.init_scale = 1, .delayed_shift = 1});
  scaler.observe({.nonfinite = true});
  expect_refusal<scale_exhausted>("policy deepspeed", [&] { scaler.update(); });
  EXPECT_EQ(scaler.get_scale(), 1);
  scaler.observe({});
  EXPECT_TRUE(scaler.update().apply);
}

TEST(LossScaler, SettingsThatCannotBe) {
  EXPECT_THROW(loss_scaler(native_scaling{.min_exponent = -127}), invalid_argument);
  EXPECT_THROW(loss_scaler(native_scaling{.init_exponent = 25}), invalid_argument);
  EXPECT_THROW(loss_scaler(native_scaling{.gradient_format = format_id::e8m0}), invalid_argument);
  EXPECT_THROW(loss_scaler(torch_scaling{.growth_factor = 1}), invalid_argument);
  EXPECT_THROW(loss_scaler(torch_scaling{.init_scale = 1e39}), invalid_argument);
  EXPECT_THROW(loss_scaler(torch_scaling{.backoff_factor = -0.5}), invalid_argument);
  EXPECT_THROW(loss_scaler(apex_scaling{.growth_factor = std::nan("")}), invalid_argument);
  EXPECT_THROW(loss_scaler(apex_amp_scaling{.max_loss_scale = 0}), invalid_argument);
  EXPECT_THROW(loss_scaler(megatron_scaling{.initial_scale = 0.5}), invalid_argument);
  EXPECT_THROW(loss_scaler(deepspeed_scaling{.scale_window = 0}), invalid_argument);
  constexpr std::int64_t minimum = std::numeric_limits<std::int64_t>::min();
  EXPECT_THROW(loss_scaler(torch_scaling{.growth_interval = minimum}), invalid_argument);
  EXPECT_THROW(loss_scaler(deepspeed_scaling{.delayed_shift = minimum}), invalid_argument);
  expect_refusal<invalid_argument>("policy megatron: hysteresis must be",
                                   [] { loss_scaler(megatron_scaling{.hysteresis = 0}); });
}

TEST(LossScaler, OptionsByName) {
  scaling_settings settings = default_settings(scaling_policy::native);
  set_option(settings, "gradient_format", "bf16");
  set_option(settings, "on_loss", "back_off");
  set_option(settings, "min_exponent", "-20");
  const auto& native = std::get<native_scaling>(settings);
  EXPECT_EQ(native.gradient_format, format_id::bf16);
  EXPECT_EQ(native.on_loss, loss_fault::back_off);
  EXPECT_EQ(native.min_exponent, -20);
  settings = default_settings(scaling_policy::deepspeed);
  set_option(settings, "init_scale", "0x1p10");
  set_option(settings, "consecutive_hysteresis", "True");
  EXPECT_EQ(std::get<deepspeed_scaling>(settings).init_scale, 1024);
  EXPECT_TRUE(std::get<deepspeed_scaling>(settings).consecutive_hysteresis);
  EXPECT_THROW(set_option(settings, "growth_factor", "2"), invalid_argument);
  EXPECT_THROW(set_option(settings, "scale_window", "2.5"), invalid_argument);
  EXPECT_THROW(set_option(settings, "scale_window", ""), invalid_argument);
}

}  // namespace
}  // namespace samebits
