// Delayed scaling against a transcription of TransformerEngine's steps in the processor's binary32.
#include "samebits/delayed_scaling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/self_test/build_flags.hpp"
#include "samebits/quantize.hpp"
#include "samebits/recipe.hpp"

namespace samebits {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float flt_max = 0x1.fffffep127f;

/// _default_sf_compute, _default_get_amax_and_update_history and what quantization does to them,
/// written from their description: roll(-1), [0] = 0, S = M / amax / 2^margin.
struct transcription {
  std::vector<float> history;
  float scale = 1;
  float scale_inv = 1;

  void step(float amax, const delayed_settings& settings) {
    if (std::isnan(amax) || amax > history[0]) history[0] = std::isnan(history[0]) ? nan : amax;
    const float m = settings.to == format_id::e4m3 ? 448 : 57344;
    float a = settings.choice == history_choice::most_recent ? history[0] : 0;
    if (settings.choice == history_choice::maximum) {
      for (const float h : history) a = std::fmax(a, h);  // drops NaN
    }
    if (settings.zero_step == zero_step::skip && history[0] == 0) return;
    std::rotate(history.begin(), history.begin() + 1, history.end());
    history[0] = 0;
    if (a > 0 && std::isfinite(a)) {
      volatile float numerator = std::ldexp(m, -settings.margin);
      volatile float s = numerator / a;
      scale = std::isinf(s) ? flt_max : s;
      volatile float r = scale;
      scale_inv = 1 / r;
    }
  }
};

bool same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

/// Zeros, accidents, any bits, or a walk over few binades.
float draw_amax(std::mt19937_64& random, float last) {
  switch (random() % 16) {
    case 0: return 0;
    case 1: return inf;
    case 2: return nan;
    case 3: return std::bit_cast<float>(static_cast<std::uint32_t>(random()) % 0x7F800000u);
    case 4: return std::bit_cast<float>(static_cast<std::uint32_t>(random()) % 0x00800000u);
    default:
      return std::ldexp(
          1.0f + static_cast<float>(random() % 0x800000) * 0x1p-23f,
          static_cast<int>(random() % 5) - 2 +
              (std::isfinite(last) && last > 0x1p-100f && last < 0x1p100f ? std::ilogb(last) : 0));
  }
}

TEST(DelayedScaling, FollowsTheTranscription) {
  std::mt19937_64 random(20);
  for (int trace = 0; trace < 4000; ++trace) {
    const delayed_settings settings = {
        random() % 2 == 0 ? format_id::e4m3 : format_id::e5m2, static_cast<int>(random() % 9) - 4,
        random() % 2 == 0 ? history_choice::maximum : history_choice::most_recent,
        random() % 2 == 0 ? zero_step::skip : zero_step::roll};
    const std::size_t length = std::array<std::size_t, 5>{1, 2, 3, 16, 37}[random() % 5];
    transcription expected{std::vector<float>(length, 0.0f)};
    std::vector<float> history(length, 0.0f);
    delayed_scale state;
    float amax = 1;
    for (int step = 0; step < 100; ++step) {
      amax = draw_amax(random, amax);
      expected.step(amax, settings);
      observe(history, amax);
      state = updated(state, history, settings);
      ASSERT_TRUE(same(state.inverse_scale, expected.scale)) << trace << " " << step << " " << amax;
      ASSERT_TRUE(same(state.scale, expected.scale_inv)) << trace << " " << step << " " << amax;
      for (std::size_t i = 0; i < length; ++i) {
        ASSERT_TRUE(same(history[i], expected.history[i])) << trace << " " << step << " " << i;
      }
    }
  }
}

// --- At compile time -----------------------------------------------------------------------------

constexpr delayed_scale after(std::array<float, 3> history, const delayed_settings& settings = {}) {
  return updated({}, history, settings);
}
static_assert(after({2, 448, 7}) == delayed_scale{1, 1});
static_assert(after({2, 448, 7}, {.choice = history_choice::most_recent}) ==
              delayed_scale{224, 1.0f / 224});
static_assert(after({0, 0, 0}) == delayed_scale{1, 1});
static_assert(after({1, 896, 0}, {.margin = 1}) == delayed_scale{0.25f, 4});
static_assert(after({0x1p-149f, 0, 0}) == delayed_scale{flt_max, 0x1p-128f});
// An Inf among amaxes is the largest, and keeps the scale.
static_assert(after({1, inf, 0}) == delayed_scale{1, 1});
constexpr std::array<float, 3> moved(std::array<float, 3> history, zero_step at_zero = {}) {
  static_cast<void>(updated({}, history, {.zero_step = at_zero}));
  return history;
}
static_assert(moved({0, 2, 3}) == std::array<float, 3>{0, 2, 3});
static_assert(moved({0, 2, 3}, zero_step::roll) == std::array<float, 3>{0, 3, 0});
static_assert(after({0, 448, 7}) == delayed_scale{1, 1});
static_assert(after({0, 896, 7}, {.zero_step = zero_step::roll}) == delayed_scale{0.5f, 2});
static_assert(moved({1, 2, 3}) == std::array<float, 3>{0, 3, 1});
// margins end at 64
static_assert(after({1, 448, 0}, {.margin = 64}) == delayed_scale{0x1p-64f, 0x1p64f});
static_assert(after({1, 448, 0}, {.margin = 65}) == delayed_scale{0x1p-64f, 0x1p64f});
static_assert(after({1, 448, 0}, {.margin = -64}) == delayed_scale{0x1p64f, 0x1p-64f});
static_assert(after({1, 448, 0}, {.margin = -65}) == delayed_scale{0x1p64f, 0x1p-64f});
// a history without elements stays so
constexpr delayed_scale of_nothing() {
  observe({}, 1);
  return updated({2, 0.5f}, {}, {});
}
static_assert(of_nothing() == delayed_scale{2, 0.5f});

TEST(DelayedScaling, QuantizesByTheStoredScale) {
  std::vector<float> history(4, 0.0f);
  delayed_scale state;
  const recipe_preset* preset = find_recipe("TE_DELAYED");
  ASSERT_NE(preset, nullptr);
  const std::vector<float> x = {1, -2, 3.5f};
  std::vector<std::uint8_t> codes(3);
  float scale = 0;
  quantize_statistics statistics;
  const auto step = [&] {
    quantize_options options = options_of(preset->rules);
    options.inverse_scales =
        view_of_codes(format_id::fp32, static_cast<const float*>(&state.inverse_scale), 1, 1);
    quantize(view_of_codes(format_id::fp32, x.data(), 1, 3),
             {.codes = view_of_codes(format_id::e4m3, codes.data(), 1, 3),
              .scales = view_of_codes(format_id::fp32, &scale, 1, 1),
              .statistics = &statistics},
             options);
    observe(history, statistics.amax);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(scale), std::bit_cast<std::uint32_t>(state.scale));
    state = updated(state, history, {});
  };
  step();
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{0x38, 0xC0, 0x46}));  // S = 1
  EXPECT_EQ(state.inverse_scale, 128.0f);                           // 448 / 3.5
  step();
  EXPECT_EQ(codes, (std::vector<std::uint8_t>{0x70, 0xF8, 0x7E}));
}

}  // namespace
}  // namespace samebits
