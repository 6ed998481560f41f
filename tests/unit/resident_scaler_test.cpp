// The state of a scaler in memory of a caller: it continues from a loss_scaler and returns one.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "backends/loss_scaler/resident.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/loss_scale/decide.hpp"
#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits {
namespace {

/// A scenario of decisions; at every step the state goes through memory and text.
template <class Settings>
void expect_no_interruption(const Settings& settings) {
  using resident = numerics::resident_scaler<decltype(initial_state(settings))>;
  std::mt19937 random(11);
  resident whole = {initial_state(settings), 0, 0};
  loss_scaler kept(settings);
  for (int i = 0; i < 500; ++i) {
    kept = loss_scaler::load(kept.save());
    ASSERT_EQ(backends::resident_bytes(kept.settings()), sizeof(resident));
    std::vector<std::byte> memory(sizeof(resident), std::byte{0xCD});
    numerics::scaler_words words;
    backends::store_resident(kept, memory.data(), &words);
    ASSERT_EQ(std::bit_cast<float>(words.scale), static_cast<float>(kept.get_scale()));
    ASSERT_EQ(std::bit_cast<float>(words.inverse), kept.inverse_scale());
    ASSERT_EQ(words.bad_loss, 0u);
    resident resumed;
    std::memcpy(&resumed, memory.data(), sizeof(resident));
    rank_observation seen;
    seen.seen.nonfinite = random() % 7 == 0;
    seen.seen.amax = seen.seen.nonfinite ? numerics::binary32::inf : 0x3F800000u;
    const step_report expected = decide(settings, whole, seen);
    const step_report got = decide(std::get<Settings>(kept.settings()), resumed, seen);
    ASSERT_EQ(got.step, expected.step);
    ASSERT_EQ(got.scale, expected.scale);
    ASSERT_EQ(got.change, expected.change);
    ASSERT_EQ(got.applied_steps, expected.applied_steps);
    ASSERT_EQ(resumed.policy, whole.policy) << name(Settings::policy) << ", step " << i;
    std::memcpy(memory.data(), &resumed, sizeof(resident));
    kept = backends::load_resident(settings, memory.data());
  }
  EXPECT_EQ(kept.updates(), 500u);
  EXPECT_GT(kept.applied_steps(), 100u);
  EXPECT_LT(kept.applied_steps(), 500u);
}

TEST(ResidentScaler, ResumeIsNoInterruption) {
  expect_no_interruption(native_scaling{.growth_interval = 5, .recovery_interval = 5, .proof = 5});
  expect_no_interruption(torch_scaling{.growth_interval = 5});
  expect_no_interruption(apex_scaling{.growth_factor = 1.7, .growth_interval = 5});
  expect_no_interruption(apex_amp_scaling{.scale_window = 5});
  expect_no_interruption(megatron_scaling{.growth_interval = 5});
  expect_no_interruption(deepspeed_scaling{.scale_window = 5});
}

TEST(ResidentScaler, RefusesMemoryThatNoScalerWrote) {
  const native_scaling settings;
  numerics::resident_scaler<native_state> resident = {initial_state(settings), 7, 5};
  const auto load = [&] {
    return backends::load_resident(settings, reinterpret_cast<const std::byte*>(&resident));
  };
  EXPECT_EQ(load().updates(), 7u);
  resident.applied_steps = 8;
  EXPECT_THROW(load(), invalid_argument);
  resident.applied_steps = 5;
  resident.policy.exponent = settings.max_exponent + 1;
  EXPECT_THROW(load(), invalid_argument);
}

}  // namespace
}  // namespace samebits
