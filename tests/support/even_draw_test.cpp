// Even draws: every pair of values occurs, and what is missing is named; the batches that
// device.quantize_many runs on a GPU hold every combination that its documentation claims.
#include "engine/core/even_draw.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "device/quantize_batches.hpp"

namespace samebits::support {
namespace {

TEST(EvenDraw, MeetsEveryPairInFewCases) {
  even_draw draws;
  for (int i = 0; i < 288; ++i) {  // twice the largest product of two counts
    draws.begin();
    draws.draw("first", 12);
    for (const char* option : {"second", "third", "fourth"}) draws.draw(option, 4);
    draws.draw("fifth", 12);
  }
  EXPECT_EQ(draws.missing(), "");
}

TEST(EvenDraw, NamesThePairsThatNeverOccurred) {
  even_draw draws;
  for (std::size_t i = 0; i < 6; ++i) {
    draws.begin();
    draws.fix("format", i % 3, 3);
    draws.fix("policy", i % 3, 3);  // tied to the format
  }
  EXPECT_EQ(draws.missing(),
            "6 pairs never occurred: format 0 with policy 1; format 0 with policy 2; format 1 with "
            "policy 0; format 1 with policy 2; format 2 with policy 0; format 2 with policy 1; ");
}

TEST(EvenDraw, RefusesOptionsInAnotherOrder) {
  even_draw draws;
  draws.begin();
  draws.draw("a", 2);
  draws.begin();
  EXPECT_THROW(draws.draw("b", 2), std::logic_error);
  EXPECT_THROW(draws.draw("a", 3), std::logic_error);
  EXPECT_THROW(draws.fix("a", 2, 2), std::logic_error);
}

/// A round of batches: each tile by each rule and rounding once, each two values of other options.
TEST(QuantizeBatches, HoldEveryCombination) {
  quantize_batches draws;
  for (int turn = 0; turn < 2; ++turn) {
    std::set<std::tuple<std::int64_t, std::int64_t, scale_rule, rounding, int>> seen;
    std::map<scale_rule, int> rules;
    std::map<nonfinite, int> policies;
    for (std::uint64_t n = 0; n < quantize_batches::round; ++n) {
      const quantize_case b = draws.next(5'000'000);
      const bool stochastic = b.options.rounding == rounding::stochastic;
      seen.insert({b.options.tile.rows, b.options.tile.cols, b.options.scale, b.options.rounding,
                   stochastic ? b.options.random.bits : 0});
      ++rules[b.options.scale];
      ++policies[b.options.nonfinite];
      EXPECT_GE(b.in.rows * b.in.cols, 5'000'000);
    }
    EXPECT_EQ(seen.size(), 16u * one_level_scale_rules);
    EXPECT_EQ(rules.size(), static_cast<std::size_t>(one_level_scale_rules));
    EXPECT_EQ(policies.size(), static_cast<std::size_t>(enum_count<nonfinite>));
    EXPECT_EQ(draws.missing(), "");
  }
}

}  // namespace
}  // namespace samebits::support
