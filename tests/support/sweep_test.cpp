// Tests of sweeps: the codes around thresholds. exhaustive.convert_thresholds compares the codes of a sweep
// with conversions.
#include "support/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "oracle/convert.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

oracle::step_function steps_to(const char* to) {
  return oracle::make_step_function(oracle::format_named("fp32"), oracle::format_named(to), {});
}

TEST(Sweep, FillRefusesCodesBeyondTheEnd) {
  std::uint8_t codes[2];
  EXPECT_THROW(code_steps(steps_to("e4m3")).fill(0xFFFFFFFF, 1, 2, codes), std::invalid_argument);
  const oracle::step_function other =
      oracle::make_step_function(oracle::format_named("bf16"), oracle::format_named("e4m3"), {});
  EXPECT_THROW(code_steps{other}, std::invalid_argument);
}

TEST(Sweep, CodesAroundHoldEveryThresholdAndNan) {
  const oracle::step_function f = steps_to("e2m1");
  const std::vector<std::uint32_t> codes = code_steps(f).codes_around(2);
  EXPECT_TRUE(std::is_sorted(codes.begin(), codes.end()));
  const auto has = [&](std::uint32_t code) {
    return std::binary_search(codes.begin(), codes.end(), code);
  };
  for (const oracle::step& s : f.positive) {
    for (std::uint32_t i = 0; i <= 2; ++i) {
      EXPECT_TRUE(has(s.first + i));
      EXPECT_TRUE(s.first < i || has(s.first - i));
      EXPECT_TRUE(has(0x80000000 + s.first + i));
    }
  }
  for (const std::uint32_t code :
       {0x7F7FFFFEu, 0x7F7FFFFFu, 0x7F800000u, 0x7F800001u, 0x7FC00000u, 0x7FBFFFFFu, 0x7FFFFFFFu,
        0xFF800001u, 0xFFC00000u, 0xFFFFFFFFu, 0x00000000u, 0x80000000u, 0x00000002u}) {
    EXPECT_TRUE(has(code)) << code;
  }
}

}  // namespace
}  // namespace samebits::support
