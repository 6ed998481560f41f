// Tests of the step functions of fp32 against direct conversion: the two share no rounding code. Those of
// smaller sources: exhaustive.narrow compares them with the library, property.convert direct conversions.
#include "oracle/thresholds.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/test_support.hpp"

namespace samebits::oracle {
namespace {

using testing::random_codes;

std::string describe(const step_function& f) {
  return std::string(f.from->name) + " to " + std::string(f.to->name) + ' ' +
         std::string(name(f.rule.rounding)) + ' ' + std::string(name(f.rule.overflow)) + ' ' +
         std::string(name(f.rule.nan));
}

/// Evaluates f at all codes; stops at the first difference.
void expect_same(const step_function& f, const std::vector<std::uint64_t>& codes) {
  for (const std::uint64_t code : codes) {
    const std::uint64_t direct = convert(*f.from, *f.to, code, f.rule);
    const std::uint64_t stepped = evaluate(f, static_cast<std::uint32_t>(code));
    ASSERT_EQ(stepped, direct) << describe(f) << " code 0x" << std::hex << code;
  }
}

/// The codes one below, at and one above every `stride`-th step of both signs.
std::vector<std::uint64_t> around_steps(const step_function& f, std::size_t stride) {
  const std::uint64_t unit = std::uint64_t{1} << f.from->unused_low_bits;
  const std::uint64_t sign = std::uint64_t{1} << (f.from->code_bits - 1);
  std::vector<std::uint64_t> codes;
  const auto add = [&](const std::vector<step>& steps, std::uint64_t base) {
    for (std::size_t i = 0; i < steps.size(); i += stride) {
      codes.push_back(base + steps[i].first);
      codes.push_back(base + steps[i].first + unit);
      if (steps[i].first != 0) codes.push_back(base + steps[i].first - unit);
    }
  };
  add(f.positive, 0);
  if (f.from->sign_bits == 1) add(f.negative, sign);
  return codes;
}

void expect_well_formed(const step_function& f) {
  for (const std::vector<step>* steps : {&f.positive, &f.negative}) {
    for (std::size_t i = 1; i < steps->size(); ++i) {
      ASSERT_LT((*steps)[i - 1].first, (*steps)[i].first) << describe(f);
      ASSERT_NE((*steps)[i - 1].code, (*steps)[i].code) << describe(f);
    }
    if (!steps->empty()) {
      ASSERT_LE(steps->back().first, f.from->max_finite) << describe(f);
    }
  }
}

/// Into formats of 8 bits every step, into wider ones some; tf32, of half a million steps, in one rounding
/// of each kind of threshold.
TEST(OracleThresholds, Fp32AroundStepsAndAtRandom) {
  const format& from = format_named("fp32");
  const std::vector<std::uint64_t> random = random_codes(3000, 32, 3);
  for (const format& to : format_table) {
    if (to.name == "fp64" || to.name == "fp32") continue;
    const std::size_t stride = to.storage_bits == 8 ? 1 : to.storage_bits == 16 ? 29 : 211;
    for (const cast_rule& rule : deterministic_rules()) {
      const bool repeats_a_kind = rule.rounding == rounding::nearest_away ||
                                  rule.rounding == rounding::toward_zero ||
                                  rule.rounding == rounding::downward;
      if (to.storage_bits > 8 && (rule.overflow != overflow::ieee || rule.nan != nan_policy{})) {
        continue;
      }
      if (to.storage_bits == 32 && repeats_a_kind) continue;
      const step_function f = make_step_function(from, to, rule);
      expect_well_formed(f);
      expect_same(f, around_steps(f, stride));
      expect_same(f, random);
      if (HasFatalFailure()) return;
    }
  }
}

// Midpoints 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5: every second one goes up only when exceeded.
TEST(OracleThresholds, E2m1NearestEvenByHand) {
  const step_function f = make_step_function(format_named("fp32"), format_named("e2m1"), {});
  const std::vector<step> positive{{0, 0},          {0x3E800001, 1}, {0x3F400000, 2},
                                   {0x3FA00001, 3}, {0x3FE00000, 4}, {0x40200001, 5},
                                   {0x40600000, 6}, {0x40A00001, 7}};
  EXPECT_EQ(f.positive, positive);
  ASSERT_EQ(f.negative.size(), positive.size());
  for (std::size_t i = 0; i < positive.size(); ++i) {
    EXPECT_EQ(f.negative[i].first, positive[i].first);
    EXPECT_EQ(f.negative[i].code, positive[i].code + 8);
  }
  EXPECT_EQ(f.pos_inf, 7u);
  EXPECT_EQ(f.neg_inf, 15u);
  EXPECT_EQ(f.pos_nan, 7u);
  EXPECT_EQ(f.neg_nan, 7u);
}

TEST(OracleThresholds, SignsOfFnuzAndE8m0Sources) {
  const step_function fnuz = make_step_function(format_named("e4m3fnuz"), format_named("e5m2"), {});
  EXPECT_EQ(fnuz.negative.front().first, 1u);
  EXPECT_EQ(evaluate(fnuz, 0x80), 0x7Fu);
  const step_function scale = make_step_function(format_named("e8m0"), format_named("bf16"), {});
  EXPECT_TRUE(scale.negative.empty());
  EXPECT_EQ(evaluate(scale, 0x00), 0x0040u);
  EXPECT_EQ(evaluate(scale, 0xFE), 0x7F00u);
  EXPECT_EQ(evaluate(scale, 0xFF), 0x7FFFu);
}

TEST(OracleThresholds, IgnoredSourceBits) {
  const step_function wide = make_step_function(format_named("tf32"), format_named("e5m2"), {});
  EXPECT_EQ(evaluate(wide, 0x7F801FFF), 0x7Cu);
  EXPECT_EQ(evaluate(wide, 0xFF801FFF), 0xFCu);
  EXPECT_EQ(evaluate(wide, 0x7F7FFFFF), 0x7Cu);
  EXPECT_EQ(evaluate(wide, 0x7F802000), 0x7Fu);
  EXPECT_EQ(evaluate(wide, 0x3F901FFF), 0x3Cu);  // 1.125, a tie, whatever the low bits say
  const step_function narrow = make_step_function(format_named("e2m1"), format_named("e5m2"), {});
  EXPECT_EQ(evaluate(narrow, 0xF2), 0x3Cu);
  EXPECT_EQ(evaluate(narrow, 0xFA), 0xBCu);
}

TEST(OracleThresholds, Refusals) {
  const format& fp32 = format_named("fp32");
  EXPECT_THROW(make_step_function(fp32, fp32, {}), std::invalid_argument);
  EXPECT_THROW(make_step_function(fp32, format_named("fp64"), {}), std::invalid_argument);
  EXPECT_THROW(make_step_function(format_named("fp64"), format_named("e4m3"), {}),
               std::invalid_argument);
  EXPECT_THROW(make_step_function(fp32, format_named("e4m3"), {rounding::stochastic}),
               std::invalid_argument);
}

}  // namespace
}  // namespace samebits::oracle
