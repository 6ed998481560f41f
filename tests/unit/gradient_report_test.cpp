// Gradient reports and the end of a step, by the processor's floating-point steps.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>

#include "numerics/loss_scale/gradient_report.hpp"
#include "samebits/loss_scaler.hpp"

namespace samebits::numerics {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
float value(std::uint32_t x) { return std::bit_cast<float>(x); }

constexpr float inf = std::numeric_limits<float>::infinity();
scaler_words words_of(float scale) { return {bits(scale), bits(1.0f / scale)}; }

void expect_report(const gradient_report& got, const gradient_report& expected) {
  const auto all = [](const gradient_report& r) {
    return std::tie(r.norm, r.first_bad, r.found_inf, r.amax, r.nonfinite, r.overflowed, r.factor,
                    r.divisor, r.writes);
  };
  EXPECT_TRUE(all(got) == all(expected));
}

TEST(GradientReport, InspectionOfFiniteGradients) {
  const scaler_words words = words_of(1024.0f);
  unscale_rule rule = {.max_norm = bits(0.5), .first = 10};
  const gradient_report r = report_of_inspection(words, rule, bits(4.0 * 1048576), bits(-3.0f), -1);
  const auto clip = static_cast<float>(0.5 / (2.0 + 1e-6));
  expect_report(r, {bits(2.0), -1, 0, bits(3.0f), 0, 0, bits(clip * (1.0f / 1024.0f)),
                    bits(1024.0f / clip), 1});
  rule.only_clips = true;
  EXPECT_EQ(report_of_inspection(words, rule, bits(4.0 * 1048576), 0, -1).writes, 1u);
  EXPECT_EQ(report_of_inspection(words, rule, bits(0.01 * 1048576), 0, -1).writes, 0u);
  rule.rewrites = false;
  EXPECT_EQ(report_of_inspection(words, rule, bits(4.0 * 1048576), 0, -1).writes, 0u);
}

TEST(GradientReport, InspectionWithoutClipping) {
  const scaler_words words = words_of(3.0f);
  const gradient_report r = report_of_inspection(words, {}, bits(9.0), bits(3.0f), -1);
  EXPECT_EQ(r.factor, words.inverse);
  EXPECT_EQ(r.divisor, words.scale);
}

TEST(GradientReport, InspectionOfBadGradients) {
  const scaler_words words = words_of(4.0f);
  const unscale_rule rule = {.max_norm = bits(1.0), .first = 7, .only_clips = true};
  const gradient_report r = report_of_inspection(words, rule, bits(double{inf}), bits(inf), 2);
  expect_report(r, {bits(double{inf}), 9, bits(1.0f), bits(inf), 1, 0, bits(0.25f), bits(4.0f), 0});
  const std::uint64_t nan = bits(std::numeric_limits<double>::quiet_NaN());
  const gradient_report of_nan = report_of_inspection(words, {}, nan, 0x7FFFFFFF, 0);
  EXPECT_EQ(of_nan.norm, binary64::nan);
  EXPECT_EQ(of_nan.first_bad, 0);
  EXPECT_EQ(of_nan.writes, 1u);
  EXPECT_EQ(report_of_inspection(words, {}, bits(1.0), 0, 0).found_inf, bits(1.0f));
  // The sum of the squares overflows, though no gradient is Inf.
  const gradient_report huge = report_of_inspection(words, {}, bits(double{inf}), bits(1.0f), -1);
  EXPECT_EQ(huge.found_inf, bits(1.0f));
  EXPECT_EQ(huge.first_bad, -1);
}

TEST(GradientReport, OverflowByUnscaling) {
  const scaler_words words = words_of(0.25f);
  unscale_rule rule;
  const std::uint32_t large = bits(1e38f);
  gradient_report r = report_of_inspection(words, rule, bits(1e76), large, -1);
  EXPECT_EQ(r.overflowed, 1u);
  EXPECT_EQ(r.found_inf, 0u);
  rule.skips_overflow = true;
  r = report_of_inspection(words, rule, bits(1e76), large, -1);
  EXPECT_EQ(r.found_inf, bits(1.0f));
  EXPECT_EQ(r.first_bad, -1);
}

TEST(GradientReport, Unscaling) {
  const scaler_words words = words_of(8.0f);
  unscale_rule rule = {.first = 5};
  gradient_report r = report_of_unscaling(words, rule, 0, 0, bits(-2.0f), -1);
  expect_report(r, {binary64::nan, -1, 0, bits(2.0f), 0, 0, bits(0.125f), bits(8.0f), 1});
  r = report_of_unscaling(words, rule, 3, 0, 0x7FFFFFFF, 1);
  EXPECT_EQ(r.first_bad, 6);
  EXPECT_EQ(r.found_inf, bits(1.0f));
  EXPECT_EQ(r.nonfinite, 1u);
  r = report_of_unscaling(words, rule, 0, 2, bits(1.0f), 1);
  EXPECT_EQ(r.first_bad, -1);
  EXPECT_EQ(r.found_inf, 0u);
  EXPECT_EQ(r.overflowed, 1u);
  rule.skips_overflow = true;
  r = report_of_unscaling(words, rule, 0, 2, bits(1.0f), 1);
  EXPECT_EQ(r.first_bad, 6);
  EXPECT_EQ(r.found_inf, bits(1.0f));
}

TEST(CombinedReports, AllOptimizersTogether) {
  gradient_report reports[3];
  reports[0].norm = bits(3.0);
  reports[1].norm = bits(4.0);
  reports[2].norm = bits(0.0);
  reports[0].amax = bits(1.0f);
  reports[1].amax = bits(5.0f);
  reports[2].amax = bits(2.0f);
  scaler_words words;
  combined_reports all(words, reports, 3);
  EXPECT_EQ(all.norm, bits(5.0));
  EXPECT_EQ(all.seen.seen.amax, bits(5.0f));
  EXPECT_EQ(all.seen.first_bad, -1);
  EXPECT_FALSE(all.seen.seen.nonfinite || all.seen.seen.unscaled_nonfinite ||
               all.seen.seen.loss_nonfinite);
  EXPECT_EQ(combined_reports(words, reports + 1, 1).norm, bits(4.0));
  reports[1].found_inf = bits(1.0f);  // set from outside
  reports[1].first_bad = 4;
  reports[2].first_bad = 6;
  all = combined_reports(words, reports, 3);
  EXPECT_TRUE(all.seen.seen.nonfinite);
  EXPECT_EQ(all.seen.first_bad, 4);
  reports[1].overflowed = 1;
  all = combined_reports(words, reports, 3);
  EXPECT_FALSE(all.seen.seen.nonfinite);
  EXPECT_TRUE(all.seen.seen.unscaled_nonfinite);
  reports[2].nonfinite = 1;
  reports[0].norm = binary64::nan;
  words.bad_loss = bits(-0.0f);
  all = combined_reports(words, reports, 3);
  EXPECT_TRUE(all.seen.seen.nonfinite);
  EXPECT_FALSE(all.seen.seen.loss_nonfinite);
  EXPECT_EQ(all.norm, binary64::nan);
  words.bad_loss = 0x7FC00000;
  EXPECT_TRUE(combined_reports(words, reports, 3).seen.seen.loss_nonfinite);
}

TEST(EndStep, AppliedAndSkippedSteps) {
  const torch_scaling settings = {.init_scale = 1024, .growth_interval = 1};
  resident_scaler<torch_state> scaler = {.policy = initial_state(settings)};
  scaler_words words = words_of(1024.0f);
  words.bad_loss = bits(1.0f);
  gradient_report reports[2] = {report_of_unscaling(words, {}, 0, 0, bits(1.0f), -1), {}};
  step_report step = end_step(settings, scaler, words, reports, 1);
  EXPECT_TRUE(step.applied);
  EXPECT_EQ(step.grad_mul, 1.0f / 1024.0f);
  EXPECT_TRUE(std::isnan(step.norm));
  EXPECT_EQ(value(words.scale), 2048.0f);
  EXPECT_EQ(value(words.inverse), 1.0f / 2048.0f);
  EXPECT_EQ(words.bad_loss, 0u);
  EXPECT_EQ(words.stop, 0u);
  reports[0] = report_of_inspection(words, {}, bits(double{inf}), bits(inf), 3);
  step = end_step(settings, scaler, words, reports, 2);
  EXPECT_FALSE(step.applied);
  EXPECT_EQ(step.first_bad, 3);
  EXPECT_EQ(value(words.scale), 1024.0f);
  EXPECT_EQ(value(words.inverse), 1.0f / 1024.0f);
}

}  // namespace
}  // namespace samebits::numerics
