// loss_scaler on n ranks: the decisions of one process that holds all gradients, on every rank.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "samebits/error.hpp"
#include "samebits/loss_scaler.hpp"
#include "samebits/testkit/ranks.hpp"
#include "samebits/types.hpp"
#include "support/refusal.hpp"

namespace samebits {
namespace {

using support::expect_refusal;

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr int steps = 400;
constexpr std::size_t tensors = 3;
constexpr std::size_t elements = 24;  // of each: 1, 2, 3 and 8 ranks have equal shares

/// What a step is in truth: unscaled gradients of every tensor, and whose loss is NaN.
struct true_step {
  std::vector<std::vector<float>> gradients;
  int broken_share = -1;  // of 24: the element whose sample had a loss that is not finite
};

std::vector<true_step> random_scenario(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<true_step> scenario(steps);
  for (true_step& step : scenario) {
    // Mostly below fp16's range by 2^10 to 2^16, sometimes far above.
    const int top = static_cast<int>(random() % 6) + (random() % 20 == 0 ? 12 : 0);
    for (std::size_t t = 0; t < tensors; ++t) {
      std::vector<float>& g = step.gradients.emplace_back(elements);
      for (float& x : g) {
        x = std::ldexp(static_cast<float>(random() % 2048) - 1024, top - 20);
      }
    }
    if (random() % 25 == 0) {
      step.broken_share = static_cast<int>(random() % elements);
      step.gradients[random() % tensors][static_cast<std::size_t>(step.broken_share)] = nan_value;
    }
  }
  return scenario;
}

struct outcome {
  bool applied;
  step_cause cause;
  scale_change change;
  double scale;
  std::int64_t first_bad;
  friend bool operator==(const outcome&, const outcome&) = default;
};

/// A scenario of training on the elements [begin, end) of every tensor; `ranks` null: one process.
std::vector<outcome> train(const std::vector<true_step>& scenario, const scaling_settings& settings,
                           std::size_t begin, std::size_t end, communicator* ranks) {
  loss_scaler scaler(settings);
  std::vector<outcome> outcomes;
  for (const true_step& step : scenario) {
    const int broken = step.broken_share;
    const bool mine = broken >= static_cast<int>(begin) && broken < static_cast<int>(end);
    scaler.scale(mine ? nan_value : 1.0f);
    std::vector<std::vector<fp16>> scaled;
    std::vector<matrix_view> views;
    for (const std::vector<float>& g : step.gradients) {
      std::vector<fp16>& s = scaled.emplace_back();
      for (std::size_t i = begin; i < end; ++i) {
        s.push_back(fp16(g[i] * static_cast<float>(scaler.get_scale())));
      }
    }
    for (auto& s : scaled) views.push_back(view_of(s));
    std::int64_t first_bad = scaler.unscale(views).first_bad;
    if (ranks != nullptr) first_bad = scaler.agree(*ranks).first_bad;
    const bool applied = scaler.step([] {});
    step_decision d;
    try {
      d = scaler.update();
    } catch (const scale_exhausted&) {
      d.stop = true;
    }
    outcomes.push_back({applied, d.cause, d.change, scaler.get_scale(), first_bad});
  }
  return outcomes;
}

TEST(ScalerAgreement, EveryRankDecidesAsOneProcessDoes) {
  for (int p = 0; p < enum_count<scaling_policy>; ++p) {
    const scaling_settings settings = default_settings(static_cast<scaling_policy>(p));
    const auto scenario = random_scenario(static_cast<std::uint64_t>(p) + 1);
    const auto expected = train(scenario, settings, 0, elements, nullptr);
    int skipped = 0;
    int held = 0;
    for (const outcome& o : expected) {
      skipped += o.applied ? 0 : 1;
      held += o.cause == step_cause::loss ? 1 : 0;
    }
    EXPECT_GT(skipped, held);  // both kinds of faults are there
    EXPECT_GT(held, 0);
    for (const int n : {1, 2, 3, 8}) {
      testkit::simulate_ranks(n, [&](communicator& ranks) {
        const std::size_t share = elements / static_cast<std::size_t>(n);
        const std::size_t begin = share * static_cast<std::size_t>(ranks.rank());
        const auto got = train(scenario, settings, begin, begin + share, &ranks);
        EXPECT_TRUE(got == expected) << "policy " << p << ", rank " << ranks.rank() << " of " << n;
      });
    }
  }
}

TEST(ScalerAgreement, ALossThatOneRankAloneHadIsNotHeldAgainstTheScale) {
  // After gradients are summed over ranks all have the NaN, but one knows where it came from.
  testkit::simulate_ranks(3, [](communicator& ranks) {
    loss_scaler scaler(native_scaling{.hysteresis = 1});
    scaler.scale(ranks.rank() == 1 ? nan_value : 1.0f);
    scaler.observe({.nonfinite = true, .amax = 0x7FFFFFFF});
    const rank_observation all = scaler.agree(ranks);
    EXPECT_TRUE(all.seen.loss_nonfinite);
    EXPECT_EQ(all.bad_rank, 1);
    scaler.step([] {});
    const step_decision d = scaler.update();
    EXPECT_EQ(d.cause, step_cause::loss);
    EXPECT_EQ(d.change, scale_change::kept);
  });
}

TEST(ScalerAgreement, ScalersThatDifferAreFoundOnEveryRank) {
  int found = 0;
  const auto run = [&](const native_scaling& usual, const native_scaling& other, bool stepped) {
    std::vector<int> thrown(3);
    testkit::simulate_ranks(3, [&](communicator& ranks) {
      loss_scaler scaler(ranks.rank() == 2 ? other : usual);
      if (stepped && ranks.rank() == 2) {
        scaler.observe({.amax = 0});
        scaler.update();
      }
      scaler.observe({.amax = 0});
      try {
        scaler.agree(ranks);
      } catch (const rank_error&) {
        thrown[static_cast<std::size_t>(ranks.rank())] = 1;
      }
    });
    for (const int t : thrown) found += t;
  };
  run({}, {}, false);
  EXPECT_EQ(found, 0);
  run({}, {.init_exponent = 15}, false);
  EXPECT_EQ(found, 3);
  run({}, {.hysteresis = 3}, false);
  EXPECT_EQ(found, 6);
  run({}, {}, true);
  EXPECT_EQ(found, 9);
}

TEST(ScalerAgreement, CallsOutOfOrderAreNamed) {
  single_rank ranks;
  loss_scaler scaler;
  expect_refusal<call_order_error>("agree()", [&] { scaler.agree(ranks); });
  scaler.observe({.amax = 0}, "actor");
  scaler.observe({.amax = 0}, "critic");
  scaler.agree(ranks, "actor");
  scaler.step([] {}, "actor");
  expect_refusal<call_order_error>("'actor'", [&] { scaler.agree(ranks, "actor"); });
  expect_refusal<call_order_error>("not for 'critic'", [&] { scaler.update(); });
  scaler.agree(ranks, "critic");
  scaler.scale(1.0f);
  expect_refusal<call_order_error>("scale() was called", [&] { scaler.update(); });
  scaler.agree(ranks, "critic");
  scaler.update();
  // The next step starts anew: without agree() it is a run of one rank.
  scaler.observe({.amax = 0}, "actor");
  scaler.scale(1.0f);
  scaler.update();
  EXPECT_EQ(scaler.updates(), 2u);
}

}  // namespace
}  // namespace samebits
