// The native loss-scaling policy, sentence by sentence of its definition; advance() as a constant.
#include <gtest/gtest.h>

#include "samebits/loss_scaler.hpp"

namespace samebits {
namespace {

constexpr step_observation good = {};
constexpr step_observation bad = {.nonfinite = true};

/// A policy with round numbers, so that each test can count.
constexpr native_scaling small = {.growth_interval = 100,
                                  .growth_interval_max = 400,
                                  .recovery_interval = 10,
                                  .proof = 20,
                                  .probe_window = 4,
                                  .hysteresis = 2,
                                  .forgive_after = 5,
                                  .isolated_cost = 30};

struct scenario {
  native_scaling settings = small;
  native_state state = initial_state(settings);

  step_decision step(const step_observation& seen) { return advance(settings, state, seen); }
  void steps(int count, const step_observation& seen) {
    for (int i = 0; i < count; ++i) step(seen);
  }
};

TEST(NativePolicy, GrowsAfterTheInterval) {
  scenario c;
  c.steps(99, good);
  EXPECT_EQ(c.state.exponent, 16);
  EXPECT_EQ(c.step(good).change, scale_change::grown);
  EXPECT_EQ(c.state.exponent, 17);
}

TEST(NativePolicy, AGrowthThatFailsAtOnceIsTakenBackAndNotTriedSoon) {
  scenario c;
  c.steps(100, good);
  const step_decision d = c.step(bad);
  EXPECT_FALSE(d.apply);
  EXPECT_EQ(d.change, scale_change::backed_off);
  EXPECT_EQ(c.state.exponent, 16);
  EXPECT_EQ(c.state.probe_age, -1);
  EXPECT_EQ(c.state.refuted, 1u);
  c.steps(199, good);
  EXPECT_EQ(c.state.exponent, 16);
  c.step(good);
  EXPECT_EQ(c.state.exponent, 17);
  c.steps(4, good);  // survived: the interval is the usual one again
  EXPECT_EQ(c.state.interval, 100u);
  EXPECT_EQ(c.state.probe_age, -1);
  EXPECT_EQ(c.state.refuted, 0u);
}

TEST(NativePolicy, AGrowthThatIsTakenBackClearsEarlierStrikes) {
  scenario c;
  c.settings.forgive_after = 1000;
  c.step(bad);
  c.steps(100, good);
  ASSERT_EQ(c.state.exponent, 17);
  c.step(bad);
  ASSERT_EQ(c.state.exponent, 16);
  EXPECT_EQ(c.step(bad).change, scale_change::kept);  // the first strike again
  EXPECT_EQ(c.step(bad).change, scale_change::backed_off);
}

TEST(NativePolicy, TheIntervalStopsDoubling) {
  scenario c;
  for (int failure = 0; failure < 6; ++failure) {
    while (c.step(good).change != scale_change::grown) {
    }
    c.step(bad);
  }
  EXPECT_EQ(c.state.interval, 400u);
}

TEST(NativePolicy, OneBadStepIsAnAccident) {
  scenario c;
  c.steps(50, good);
  EXPECT_EQ(c.step(bad).change, scale_change::kept);
  EXPECT_EQ(c.state.exponent, 16);
  c.steps(5, good);  // forgiven
  EXPECT_EQ(c.step(bad).change, scale_change::kept);
  // 50 - 30 + 5 - 25: growth is as far as at the start.
  EXPECT_EQ(c.state.good, 0u);
}

TEST(NativePolicy, BadStepsThatAreNotForgivenAddUp) {
  scenario c;
  c.step(bad);
  c.steps(4, good);
  EXPECT_EQ(c.step(bad).change, scale_change::backed_off);
  EXPECT_EQ(c.step(bad).change, scale_change::backed_off);
  EXPECT_EQ(c.state.exponent, 14);
}

TEST(NativePolicy, AProvenLevelIsComeBackToQuickly) {
  scenario c;
  c.steps(20, good);
  c.steps(5, bad);
  EXPECT_EQ(c.state.exponent, 12);
  EXPECT_EQ(c.state.reference, 16);
  c.steps(40, good);
  EXPECT_EQ(c.state.exponent, 16);
  c.steps(20, good);
  EXPECT_EQ(c.state.exponent, 16);
}

TEST(NativePolicy, AnUnprovenLevelIsNot) {
  scenario c;
  c.steps(19, good);
  c.steps(3, bad);
  EXPECT_EQ(c.state.exponent, 14);
  EXPECT_EQ(c.state.reference, 15);
}

TEST(NativePolicy, AFallOnTheWayBackHalvesTheWay) {
  scenario c;
  c.steps(20, good);
  c.steps(9, bad);  // 16 -> 8
  c.steps(15, good);
  ASSERT_EQ(c.state.exponent, 9);
  c.steps(2, bad);
  EXPECT_EQ(c.state.exponent, 8);
  EXPECT_EQ(c.state.reference, 12);
}

TEST(NativePolicy, BoundsHold) {
  scenario c;
  c.settings.min_exponent = 15;
  c.settings.max_exponent = 17;
  c.steps(2, bad);
  EXPECT_EQ(c.step(bad).change, scale_change::at_minimum);
  EXPECT_EQ(c.state.exponent, 15);
  c.steps(1000, good);
  EXPECT_EQ(c.state.exponent, 17);
  c.settings.on_minimum = at_minimum::stop;
  c.steps(3, bad);
  EXPECT_FALSE(c.step({.nonfinite = true, .loss_nonfinite = true}).stop);
  EXPECT_TRUE(c.step(bad).stop);
}

TEST(NativePolicy, ANonFiniteLossIsNotTheScalesFault) {
  scenario c;
  const native_state before = c.state;
  for (int i = 1; i <= 50; ++i) {
    const step_decision d = c.step({.nonfinite = true, .loss_nonfinite = true});
    EXPECT_FALSE(d.apply);
    EXPECT_EQ(d.cause, step_cause::loss);
  }
  EXPECT_EQ(c.state.skipped_run, 50u);
  c.state.skipped_run = 0;
  EXPECT_EQ(c.state, before);
  // Gradients that are finite all the same are applied: the loss only explains.
  EXPECT_TRUE(c.step({.loss_nonfinite = true}).apply);
  c.settings.on_loss = loss_fault::back_off;
  c.steps(2, {.nonfinite = true, .loss_nonfinite = true});
  EXPECT_EQ(c.state.exponent, 15);
}

TEST(NativePolicy, UnscalingThatOverflowsIsNotEither) {
  scenario c;
  c.settings.min_exponent = c.settings.init_exponent = -14;
  c.state = initial_state(c.settings);
  const native_state before = c.state;
  // 2^114 * 2^14 is beyond binary32, 2^113 * 2^14 is not.
  step_decision d = c.step({.amax = numerics::power_of_two(114)});
  EXPECT_EQ(d.cause, step_cause::unscaled);
  EXPECT_FALSE(d.apply);
  d = c.step({.unscaled_nonfinite = true});
  EXPECT_EQ(d.cause, step_cause::unscaled);
  c.state.skipped_run = 0;
  EXPECT_EQ(c.state, before);
  EXPECT_TRUE(c.step({.amax = numerics::power_of_two(113)}).apply);
}

TEST(NativePolicy, LongRunsOfSkippedStepsStop) {
  scenario c;
  c.settings.max_skipped_run = 3;
  c.steps(2, bad);
  c.step(good);
  c.steps(2, {.nonfinite = true, .loss_nonfinite = true});
  EXPECT_TRUE(c.step(bad).stop);
}

TEST(NativePolicy, HeadroomHoldsGrowthBackAndHastensIt) {
  scenario c;
  c.settings.headroom_window = 10;
  // fp16 overflows at 2^16: with one bit to spare the scaled gradients may reach binade 14.
  c.steps(100, {.amax = numerics::power_of_two(14)});
  EXPECT_EQ(c.state.exponent, 16);
  c.steps(30, {.amax = numerics::power_of_two(13)});
  EXPECT_EQ(c.state.exponent, 17);  // the higher ones are forgotten, the interval is over
  scenario far;
  far.settings.headroom_window = 10;
  for (int i = 0; i < 60; ++i) {  // unscaled 2^-20
    far.step({.amax = numerics::power_of_two(far.state.exponent - 20)});
  }
  EXPECT_GE(far.state.exponent, 20);  // by recovery_interval, not by interval
  far.settings.growth_headroom = headroom::off;
  const std::int32_t before = far.state.exponent;
  for (int i = 0; i < 60; ++i) {
    far.step({.amax = numerics::power_of_two(far.state.exponent - 20)});
  }
  EXPECT_LE(far.state.exponent, before + 1);
}

TEST(NativePolicy, HeadroomIsNotBelievedWhereGrowthFailedAllTheSame) {
  // Activations overflow above 2^18, though the gradients that are seen are small.
  scenario c;
  c.settings.headroom_window = 10;
  int skipped = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool over = c.state.exponent > 18;
    if (over) ++skipped;
    c.step({.nonfinite = over, .amax = numerics::power_of_two(c.state.exponent - 30)});
  }
  EXPECT_EQ(c.state.exponent, 18);
  EXPECT_LE(skipped, 6);  // intervals of 10, 200, then 400
}

TEST(NativePolicy, OneLargeGradientIsRememberedForTwoWindows) {
  scenario c;
  c.settings.growth_interval = 5;
  c.settings.headroom_window = 10;
  c.step({.amax = numerics::power_of_two(14)});
  c.steps(19, {.amax = numerics::power_of_two(10)});
  EXPECT_EQ(c.state.exponent, 16);
  EXPECT_EQ(c.step({.amax = numerics::power_of_two(10)}).change, scale_change::grown);
}

TEST(NativePolicy, CausesAreTold) {
  scenario c;
  EXPECT_EQ(c.step({.amax = 0x7F800000}).cause, step_cause::overflow);
  EXPECT_EQ(c.step({.amax = 0x7F800001}).cause, step_cause::nan);
  EXPECT_EQ(c.step({.amax = 0xFFFFFFFE}).cause, step_cause::nan);  // a sign says nothing
  EXPECT_EQ(c.step({.nonfinite = true, .amax = 0}).cause, step_cause::nonfinite);
  EXPECT_EQ(c.step({.amax = 0x80000000}).cause, step_cause::none);
}

/// 2^16 after 22 steps, two of them bad, at compile time.
template <class Settings>
constexpr double after_22_steps(const Settings& settings) {
  auto state = initial_state(settings);
  for (int i = 0; i < 22; ++i) advance(settings, state, {.nonfinite = i >= 20});
  return scale_of(state);
}
static_assert(initial_state(native_scaling{.init_exponent = 3}).reference == 3);
static_assert(numerics::binade_of(1) == -149 && numerics::binade_of(0) < -149);
static_assert(numerics::binade_of(0x7F7FFFFF) == 127 && numerics::binade_of(0x00800000) == -126);
static_assert(after_22_steps(native_scaling{}) == 32768);
static_assert(after_22_steps(torch_scaling{}) == 16384);
static_assert(after_22_steps(torch_scaling{.backoff_factor = 0.9, .growth_interval = 20}) ==
              106168.3203125);
static_assert(after_22_steps(apex_scaling{.hysteresis = 2}) == 32768);
static_assert(after_22_steps(apex_amp_scaling{.min_loss_scale = 20000}) == 20000);
static_assert(after_22_steps(megatron_scaling{}) == 2147483648.0);
static_assert(after_22_steps(deepspeed_scaling{}) == 32768);

}  // namespace
}  // namespace samebits
