// Tests of restricted input domains: no other input is generated or compared.
#include "samebits/testkit/domain.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "planted_kernels.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

using enum format_id;

constexpr check_effort effort{.batches = 4, .batch_size = 1000};

/// Runs a right kernel and returns the codes that it was given.
std::vector<std::uint64_t> inputs_of(const conversion_under_test& c, const check_effort& how) {
  std::vector<std::uint64_t> all;
  const auto element = [&](const conversion_under_test& k, const codes& in, std::size_t i) {
    all.push_back(in[i]);
    return right(k, in, i);
  };
  const check_result result = check_raw(c, kernel_of(c, element), how);
  EXPECT_TRUE(result) << result.message();
  EXPECT_EQ(result.compared(), all.size());
  return all;
}

TEST(InputDomain, NoOtherInputReachesTheKernel) {
  const std::vector<input_domain> domains{
      {.nan = false, .infinite = false},
      {.subnormal = false, .negative = false},
      {.nan = false, .infinite = false, .smallest = 0.5, .largest = 2},
      {.accepts = [](std::uint64_t code) { return code % 3 == 0; }},
      {.codes = {0x3F800000, 0x80000000, 0x42FE0000}},
  };
  for (const input_domain& domain : domains) {
    for (const rounding mode : {rounding::nearest_even, rounding::stochastic}) {
      conversion_under_test c = pair(fp32, e4m3, {mode, overflow::saturate});
      c.domain = domain;
      const std::vector<std::uint64_t> inputs = inputs_of(c, {.batches = 2, .batch_size = 500});
      EXPECT_GT(inputs.size(), 1000u);
      for (const std::uint64_t code : inputs) ASSERT_TRUE(domain.contains(fp32, code)) << code;
    }
  }
  conversion_under_test narrow = pair(bf16, e4m3, saturating);
  narrow.domain = {.largest = 448};
  for (const std::uint64_t code : inputs_of(narrow, effort)) {
    ASSERT_FALSE(std::isfinite(decode_double(bf16, code)) &&
                 std::abs(decode_double(bf16, code)) > 448);
  }
}

TEST(InputDomain, ASweepKeepsToTheDomain) {
  conversion_under_test c = pair(fp32, e4m3, saturating);
  c.domain = {.nan = false};
  const auto inputs = inputs_of(c, {.batches = 0, .sweep_stride = 100003});
  for (const std::uint64_t code : inputs) ASSERT_FALSE(is_nan(fp32, code));
}

TEST(InputDomain, ErrorsOutsideAreNotJudgedAndShrinkingStaysInside) {
  conversion_under_test c = pair(fp32, e4m3, saturating);
  c.domain = {.nan = false, .infinite = false, .smallest = 0x1p-6, .largest = 448};
  const auto outside = [](const conversion_under_test& k, const codes& in, std::size_t i) {
    return k.domain.contains(k.from, in[i]) ? right(k, in, i) : std::uint64_t{0x11};
  };
  const check_result passes = check_raw(c, kernel_of(c, outside), effort);
  EXPECT_TRUE(passes) << passes.message();
  const auto away = other_rule({rounding::nearest_away, overflow::saturate});
  const check_result fails = check_raw(c, kernel_of(c, away), effort);
  ASSERT_TRUE(fails.failure());
  EXPECT_TRUE(c.domain.contains(fp32, fails.failure()->input));
}

TEST(InputDomain, TheRepeatLineRepeatsTheFailure) {
  conversion_under_test c = pair(fp32, e4m3, saturating);
  const auto away = other_rule({rounding::nearest_away, overflow::saturate});
  const check_result first = check_raw(c, kernel_of(c, away), effort);
  ASSERT_TRUE(first.failure());
  EXPECT_NE(first.message().find(".domain = {.codes = {0x"), std::string::npos) << first.message();
  c.domain.codes = {first.failure()->input};
  const check_result again = check_raw(c, kernel_of(c, away), effort);
  ASSERT_TRUE(again.failure());
  EXPECT_EQ(again.failure()->input, first.failure()->input);
}

}  // namespace
}  // namespace samebits::testkit
