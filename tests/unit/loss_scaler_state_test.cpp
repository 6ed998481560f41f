// The loss scaler's checkpoints: resume gives the bits of no interruption; other libraries' states.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "samebits/loss_scaler.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

/// One iteration with what a generator draws.
void iterate(loss_scaler& scaler, std::mt19937& generator) {
  const bool bad = generator() % 7 == 0;
  const auto exponent = static_cast<std::int32_t>(generator() % 20) - 10;
  scaler.scale(generator() % 31 == 0 ? std::numeric_limits<float>::infinity() : 1.0f);
  scaler.observe({.nonfinite = bad, .amax = bad ? amax_unknown : numerics::power_of_two(exponent)},
                 "main net");
  scaler.step([] {}, "main net");
  scaler.update();
}

/// Settings under which much happens in few steps.
scaling_settings lively(scaling_policy policy) {
  scaling_settings settings = default_settings(policy);
  const auto set = [&](const char* name, const char* text) { set_option(settings, name, text); };
  switch (policy) {
    case scaling_policy::native:
      for (const char* name : {"growth_interval", "recovery_interval", "proof"}) set(name, "5");
      set("forgive_after", "3");
      set("headroom_window", "7");
      break;
    case scaling_policy::torch: set("growth_interval", "5"); break;
    case scaling_policy::apex:
      set("growth_interval", "5");
      set("hysteresis", "2");
      set("growth_factor", "1.7");
      break;
    case scaling_policy::apex_amp: set("scale_window", "5"); break;
    case scaling_policy::megatron: set("growth_interval", "5"); break;
    case scaling_policy::deepspeed: set("scale_window", "5"); break;
  }
  return settings;
}

TEST(LossScalerState, ResumeIsNoInterruption) {
  for (int i = 0; i < enum_count<scaling_policy>; ++i) {
    const auto policy = static_cast<scaling_policy>(i);
    loss_scaler whole(lively(policy));
    loss_scaler resumed(lively(policy));
    std::mt19937 a(1), b(1);
    for (int step = 0; step < 400; ++step) {
      iterate(whole, a);
      iterate(resumed, b);
      const std::string text = resumed.save();
      resumed = loss_scaler::load(text);
      ASSERT_EQ(resumed.state(), whole.state()) << name(policy) << ", step " << step;
      ASSERT_EQ(resumed.save(), text);
      ASSERT_EQ(text, whole.save());
    }
    EXPECT_EQ(resumed.updates(), 400u);
    EXPECT_EQ(resumed.applied_steps("main net"), whole.applied_steps("main net"));
    EXPECT_GT(whole.applied_steps("main net"), 100u);
  }
}

TEST(LossScalerState, TheText) {
  loss_scaler scaler(torch_scaling{.backoff_factor = 0.75});
  scaler.observe({.nonfinite = true}, "main net");
  scaler.update();
  EXPECT_EQ(scaler.save(),
            "samebits loss_scaler 1\npolicy torch\ninit_scale 0x1p+16\ngrowth_factor 0x1p+1\n"
            "backoff_factor 0x1.8p-1\ngrowth_interval 2000\nstate\nscale 0x1.8p+15\n"
            "_growth_tracker 0\nupdates 1\napplied 0 main net\nend\n");
}

TEST(LossScalerState, TextsThatAreNone) {
  loss_scaler scaler;
  scaler.observe({}, "main net");
  scaler.update();
  const std::string text = scaler.save();
  // Cut off anywhere, or with a line gone.
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(loss_scaler::load(text.substr(0, length)), invalid_argument) << length;
  }
  for (std::size_t from = 0; from < text.size(); from = text.find('\n', from) + 1) {
    const std::size_t to = text.find('\n', from) + 1;
    if (text.substr(from, to - from).starts_with("applied")) continue;
    EXPECT_THROW(loss_scaler::load(text.substr(0, from) + text.substr(to)), invalid_argument);
  }
  const auto with = [&](const std::string& before, const std::string& after) {
    std::string changed = text;
    changed.replace(changed.find(before), before.size(), after);
    return changed;
  };
  EXPECT_NO_THROW(loss_scaler::load(with("growth_interval 2000", "growth_interval 2001")));
  // before|after
  for (const std::string change :
       {"scaler 1|scaler 2", "native|sgd", "\nexponent 16|\nexponent 25",
        "\nexponent 16|\nexponent 16.5", "\nexponent 16|\nexponent  16", "probe_age -1|probe_age 4",
        "proven 0|proven 2", "max_exponent 24|max_exponent 127", "updates 1|updates -1",
        "applied 0 main|applied x main", "applied 0 main|applied 2 main", "end\n|end\nmore\n"}) {
    const std::string before = change.substr(0, change.find('|'));
    const std::string after = change.substr(before.size() + 1);
    EXPECT_THROW(loss_scaler::load(with(before, after)), invalid_argument) << after;
  }
}

TEST(LossScalerState, ErrorsNameTheCallAndTheLine) {
  EXPECT_EQ(support::refusal_of([] {
              loss_scaler::load("samebits loss_scaler 1\npolicy torch\ninit_scale much\n");
            }),
            "loss_scaler::load: line 3: expected a number");
}

TEST(LossScalerState, ATextThatWasChangedIsRefusedOrMeansSomething) {
  std::mt19937 generator(5);
  int refused = 0;
  for (int i = 0; i < 60000; ++i) {
    loss_scaler scaler(lively(static_cast<scaling_policy>(i % enum_count<scaling_policy>)));
    iterate(scaler, generator);
    std::string text = scaler.save();
    for (auto changes = 1 + generator() % 3; changes > 0; --changes) {
      const std::size_t at = generator() % text.size();
      constexpr std::string_view likely = "0123456789-+.ex \nabpst";
      text[at] = generator() % 4 == 0 ? static_cast<char>(generator())
                                      : likely[generator() % likely.size()];
    }
    try {
      loss_scaler changed = loss_scaler::load(text);
      ASSERT_EQ(loss_scaler::load(changed.save()).state(), changed.state()) << text;
      for (int step = 0; step < 20; ++step) iterate(changed, generator);
    } catch (const invalid_argument&) {
      ++refused;
    } catch (const scale_exhausted&) {
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_LT(refused, 60000);
}

// What the libraries' own state_dict() returned, with their names.

TEST(LossScalerState, PyTorch) {
  loss_scaler scaler(torch_scaling{});
  const std::vector<state_entry> saved = {{"scale", 12345.5},
                                          {"growth_factor", 1.5},
                                          {"backoff_factor", 0.9},
                                          {"growth_interval", 3},
                                          {"_growth_tracker", 2}};
  scaler.import_state(scaling_policy::torch, saved);
  scaler.observe({});
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 12345.5 * 1.5);
  const std::vector<state_entry> next = scaler.export_state(scaling_policy::torch);
  ASSERT_EQ(next.size(), 5u);
  EXPECT_EQ(next[0], (state_entry{"growth_factor", 1.5}));
  EXPECT_EQ(next[3], (state_entry{"scale", 12345.5 * 1.5}));
  EXPECT_EQ(next[4], (state_entry{"_growth_tracker", 0}));
}

TEST(LossScalerState, MegatronAndDeepSpeed) {
  loss_scaler megatron(megatron_scaling{});
  megatron.import_state(
      scaling_policy::megatron,
      std::vector<state_entry>{{"scale", 8192}, {"growth_tracker", 7}, {"hysteresis_tracker", 1}});
  EXPECT_EQ(std::get<megatron_state>(megatron.state()), (megatron_state{8192, 7, 1}));
  loss_scaler deepspeed(deepspeed_scaling{});
  const std::vector<state_entry> attributes = {{"cur_scale", 4},
                                               {"cur_iter", 100},
                                               {"last_overflow_iter", 90},
                                               {"scale_factor", 2},
                                               {"scale_window", 1000},
                                               {"min_scale", 0.5},
                                               {"delayed_shift", 3},
                                               {"cur_hysteresis", 2},
                                               {"consecutive_hysteresis", 1},
                                               {"raise_error_at_min_scale", 0}};
  deepspeed.import_state(scaling_policy::deepspeed, attributes);
  EXPECT_EQ(std::get<deepspeed_state>(deepspeed.state()), (deepspeed_state{4, 100, 90, 2}));
  EXPECT_EQ(std::get<deepspeed_scaling>(deepspeed.settings()).min_scale, 0.5);
  EXPECT_TRUE(std::get<deepspeed_scaling>(deepspeed.settings()).consecutive_hysteresis);
}

TEST(LossScalerState, ExportThenImportIsNoInterruption) {
  for (const scaling_policy policy :
       {scaling_policy::torch, scaling_policy::apex, scaling_policy::apex_amp,
        scaling_policy::megatron, scaling_policy::deepspeed}) {
    loss_scaler a(lively(policy)), b(lively(policy));
    std::mt19937 generator(3);
    for (int step = 0; step < 200; ++step) {
      iterate(a, generator);
      b.import_state(policy, a.export_state(policy));
      ASSERT_EQ(a.state(), b.state()) << name(policy) << ", step " << step;
    }
  }
}

TEST(LossScalerState, NativeTakesOverAndHandsOn) {
  loss_scaler scaler;
  const auto take = [&](double scale) {
    scaler.import_state(scaling_policy::megatron,
                        std::vector<state_entry>{
                            {"scale", scale}, {"growth_tracker", 7}, {"hysteresis_tracker", 1}});
    return scaler.get_scale();
  };
  EXPECT_EQ(take(1024), 1024);
  EXPECT_EQ(take(2047), 1024);
  EXPECT_EQ(take(4294967296), 16777216);  // max_exponent
  EXPECT_EQ(take(0), std::ldexp(1.0, -14));
  EXPECT_EQ(take(std::numeric_limits<double>::infinity()), 16777216);
  take(1024);
  for (const scaling_policy policy : {scaling_policy::torch, scaling_policy::apex,
                                      scaling_policy::megatron, scaling_policy::deepspeed}) {
    loss_scaler other(default_settings(policy));
    other.import_state(policy, scaler.export_state(policy));
    EXPECT_EQ(other.get_scale(), 1024) << name(policy);
    EXPECT_THROW(other.import_state(scaling_policy::apex_amp, {}), invalid_argument);
    EXPECT_THROW(static_cast<void>(other.export_state(scaling_policy::native)), invalid_argument);
  }
}

TEST(LossScalerState, EntriesThatCannotBe) {
  loss_scaler scaler(torch_scaling{});
  const auto expect_refused = [&](const char* words, const std::vector<state_entry>& entries) {
    support::expect_refusal(words, [&] { scaler.import_state(scaling_policy::torch, entries); });
  };
  expect_refused("there is no _growth_tracker", {{"scale", 1}});
  expect_refused("there is no scale", {{"_growth_tracker", 1}});
  expect_refused("lr", {{"scale", 1}, {"_growth_tracker", 1}, {"lr", 1}});
  expect_refused("binary32", {{"scale", 0.1}, {"_growth_tracker", 1}});
  expect_refused("integer", {{"scale", 1}, {"_growth_tracker", 1.5}});
  expect_refused("scale", {{"scale", -1}, {"_growth_tracker", 1}});
  expect_refused("above 1", {{"scale", 1}, {"_growth_tracker", 1}, {"growth_factor", 0.5}});
  EXPECT_EQ(scaler.get_scale(), 65536);  // none of them changed anything
}

}  // namespace
}  // namespace samebits
