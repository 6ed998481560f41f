// The native loss-scaling policy, sentence by sentence of its definition; advance() as a constant.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "backends/loss_scaler/fields.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/options.hpp"

namespace samebits {
namespace {

constexpr step_observation good = {};
constexpr step_observation bad = {.nonfinite = true};
constexpr step_observation bad_loss = {.nonfinite = true, .loss_nonfinite = true};

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

/// What a word expects of the last decision.
const std::map<std::string, bool (*)(const step_decision&)> expectations = {
    {"grown", [](const step_decision& d) { return d.change == scale_change::grown; }},
    {"backed_off", [](const step_decision& d) { return d.change == scale_change::backed_off; }},
    {"kept", [](const step_decision& d) { return d.change == scale_change::kept; }},
    {"at_minimum", [](const step_decision& d) { return d.change == scale_change::at_minimum; }},
    {"skipped", [](const step_decision& d) { return !d.apply; }},
    {"stop", [](const step_decision& d) { return d.stop; }},
    {"goes_on", [](const step_decision& d) { return !d.stop; }},
};

/// Runs words: `99 good`, `2 bad`, `2 loss` or `20 2^14` are steps, the last ones with gradients up to 2^14;
/// `name:value` sets an option; `name=value` expects a field of the state.
void run(const std::string& words) {
  SCOPED_TRACE(words);
  scenario c;
  step_decision last;
  std::istringstream in(words);
  for (std::string word; in >> word;) {
    if (const auto at = word.find(':'); at != std::string::npos) {
      set_option(c.settings, word.substr(0, at), word.substr(at + 1));
    } else if (const auto equal = word.find('='); equal != std::string::npos) {
      bool found = false;
      backends::for_each_field(c.state, [&](const char* name, const auto& value) {
        if (name != word.substr(0, equal)) return;
        found = true;
        EXPECT_EQ(std::to_string(value), word.substr(equal + 1)) << word;
      });
      EXPECT_TRUE(found) << word;
    } else if (const auto expected = expectations.find(word); expected != expectations.end()) {
      EXPECT_TRUE(expected->second(last)) << word;
    } else {
      std::string kind;
      in >> kind;
      const bool exponent = kind.starts_with("2^");
      EXPECT_TRUE(exponent || kind == "good" || kind == "bad" || kind == "loss") << kind;
      step_observation seen = kind == "bad" ? bad : kind == "loss" ? bad_loss : good;
      if (exponent) seen.amax = numerics::power_of_two(std::stoi(kind.substr(2)));
      for (int n = std::stoi(word); n > 0; --n) last = c.step(seen);
    }
  }
}

TEST(NativePolicy, Scenarios) {
  // grows after the interval
  run("99 good exponent=16 1 good grown exponent=17");
  // takes a growth back that fails at once, and does not try it again soon; after one that survives the
  // interval is the usual one
  run("100 good 1 bad skipped backed_off exponent=16 probe_age=-1 refuted=1 "
      "199 good exponent=16 1 good exponent=17 4 good interval=100 probe_age=-1 refuted=0");
  // a growth that is taken back clears earlier strikes
  run("forgive_after:1000 1 bad 100 good exponent=17 1 bad exponent=16 1 bad kept 1 bad "
      "backed_off");
  // the interval stops doubling
  run("100 good grown 1 bad 200 good grown 1 bad 400 good grown 1 bad 400 good grown 1 bad "
      "interval=400");
  // one bad step is an accident; growth is as far as at the start: 50 - 30 + 5 - 25
  run("50 good 1 bad kept exponent=16 5 good 1 bad kept good=0");
  // bad steps that are not forgiven add up
  run("1 bad 4 good 1 bad backed_off 1 bad backed_off exponent=14");
  // comes back quickly to a proven level, not to an unproven one
  run("20 good 5 bad exponent=12 reference=16 40 good exponent=16 20 good exponent=16");
  run("19 good 3 bad exponent=14 reference=15");
  // a fall on the way back halves the way
  run("20 good 9 bad 15 good exponent=9 2 bad exponent=8 reference=12");
  // bounds hold; at the minimum a run may stop, but not by the loss's fault
  run("min_exponent:15 max_exponent:17 2 bad 1 bad at_minimum exponent=15 1000 good exponent=17 "
      "on_minimum:stop 3 bad 1 loss goes_on 1 bad stop");
  // long runs of skipped steps stop
  run("max_skipped_run:3 2 bad 1 good 2 loss 1 bad stop");
  // holds growth back: fp16 overflows at 2^16, with one bit to spare gradients may reach binade 14;
  // larger ones are forgotten after two windows
  run("headroom_window:10 100 2^14 exponent=16 30 2^13 exponent=17");
  run("growth_interval:5 headroom_window:10 1 2^14 19 2^10 exponent=16 1 2^10 grown");
}

TEST(NativePolicy, ANonFiniteLossIsNotTheScalesFault) {
  scenario c;
  const native_state before = c.state;
  for (int i = 1; i <= 50; ++i) {
    const step_decision d = c.step(bad_loss);
    EXPECT_FALSE(d.apply);
    EXPECT_EQ(d.cause, step_cause::loss);
  }
  EXPECT_EQ(c.state.skipped_run, 50u);
  c.state.skipped_run = 0;
  EXPECT_EQ(c.state, before);
  // Gradients that are finite all the same are applied: the loss only explains.
  EXPECT_TRUE(c.step({.loss_nonfinite = true}).apply);
  c.settings.on_loss = loss_fault::back_off;
  c.steps(2, bad_loss);
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

TEST(NativePolicy, HeadroomHastensGrowth) {
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
