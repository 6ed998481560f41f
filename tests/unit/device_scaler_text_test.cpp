// Checkpoints of device_loss_scaler as text: every policy, any state, and texts that are none.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/device_loss_scaler.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

/// A scenario of decisions, saved and loaded at every step.
template <class Settings>
void expect_no_interruption(const Settings& settings) {
  std::mt19937 random(11);
  numerics::resident_scaler<decltype(initial_state(settings))> whole = {initial_state(settings), 0,
                                                                        0};
  device_scaler_checkpoint kept = {settings, {whole.policy, 0, 0}};
  for (int i = 0; i < 500; ++i) {
    const std::string text = save(kept);
    const device_scaler_checkpoint read = load_device_scaler(text);
    ASSERT_EQ(save(read), text);
    numerics::resident_scaler<decltype(initial_state(settings))> resumed = {
        std::get<decltype(whole.policy)>(read.state.policy), read.state.steps,
        read.state.applied_steps};
    rank_observation seen;
    seen.seen.nonfinite = random() % 7 == 0;
    seen.seen.amax = seen.seen.nonfinite ? numerics::binary32::inf : 0x3F800000u;
    const step_report expected = decide(settings, whole, seen);
    const step_report got = decide(std::get<Settings>(read.settings), resumed, seen);
    ASSERT_EQ(got.scale, expected.scale);
    ASSERT_EQ(got.change, expected.change);
    ASSERT_EQ(got.applied_steps, expected.applied_steps);
    ASSERT_EQ(resumed.policy, whole.policy) << name(Settings::policy) << ", step " << i;
    kept.state = {resumed.policy, resumed.steps, resumed.applied_steps};
  }
  EXPECT_EQ(kept.state.steps, 500u);
  EXPECT_GT(kept.state.applied_steps, 100u);
  EXPECT_LT(kept.state.applied_steps, 500u);
}

TEST(DeviceScalerText, ResumeIsNoInterruption) {
  expect_no_interruption(native_scaling{.growth_interval = 5, .recovery_interval = 5, .proof = 5});
  expect_no_interruption(torch_scaling{.growth_interval = 5});
  expect_no_interruption(apex_scaling{.growth_factor = 1.7, .growth_interval = 5});
  expect_no_interruption(apex_amp_scaling{.scale_window = 5});
  expect_no_interruption(megatron_scaling{.growth_interval = 5});
  expect_no_interruption(deepspeed_scaling{.scale_window = 5});
}

device_scaler_checkpoint some() {
  return {torch_scaling{.backoff_factor = 0.75},
          {torch_state{.scale = 0x1.8p+15f, .growth_tracker = 3}, 7, 5}};
}

TEST(DeviceScalerText, TheText) {
  EXPECT_EQ(save(some()),
            "samebits device_scaler 1\npolicy torch\ninit_scale 0x1p+16\ngrowth_factor 0x1p+1\n"
            "backoff_factor 0x1.8p-1\ngrowth_interval 2000\nstate\nscale 0x1.8p+15\n"
            "_growth_tracker 3\nsteps 7\napplied_steps 5\nend\n");
}

TEST(DeviceScalerText, TextsThatAreNone) {
  const std::string text = save(some());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(load_device_scaler(text.substr(0, length)), invalid_argument) << length;
  }
  for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
    const std::size_t to = text.find('\n', from) + 1;
    EXPECT_THROW(load_device_scaler(text.substr(0, from) + text.substr(to)), invalid_argument);
  }
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string changed = text;
    changed.replace(changed.find(before), before.size(), after);
    return changed;
  };
  EXPECT_NO_THROW(load_device_scaler(with("\nsteps 7", "\nsteps 8")));
  for (const auto& [before, after] :
       std::vector<std::pair<std::string, std::string>>{{"scaler 1", "scaler 2"},
                                                        {"device_scaler", "loss_scaler"},
                                                        {"torch", "sgd"},
                                                        {"growth_factor 0x1p+1", "growth_factor 0"},
                                                        {"_growth_tracker 3", "_growth_tracker x"},
                                                        {"\nsteps 7", "\nsteps 4"},
                                                        {"\nsteps 7", "\nsteps -7"},
                                                        {"end\n", "end\nmore\n"}}) {
    EXPECT_THROW(load_device_scaler(with(before, after)), invalid_argument) << after;
  }
  device_scaler_checkpoint mixed = some();
  mixed.settings = native_scaling{};
  EXPECT_THROW(save(mixed), invalid_argument);
}

TEST(DeviceScalerText, ErrorsNameTheCallAndTheLine) {
  try {
    load_device_scaler("samebits device_scaler 1\npolicy torch\ninit_scale much\n");
    ADD_FAILURE() << "read";
  } catch (const invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()), "load_device_scaler: line 3: expected a number");
  }
}

}  // namespace
}  // namespace samebits
