// Two roundings instead of one, for all operands of 8 bits: the steps in binary16 and binary32 that
// GPUs compute e4m3 and e5m2 by. These comparisons are the proof in docs/decisions/0026.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "samebits/arithmetic.hpp"
#include "samebits/convert.hpp"
#include "support/arithmetic_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

class TwoRoundings : public ::testing::TestWithParam<format_id> {
 protected:
  static operands at(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
    return {{GetParam(), a}, {GetParam(), b}, {GetParam(), c}};
  }

  /// Whether a result in a wider format, rounded once more, is that of one rounding, by both
  /// policies. Returns how many are not.
  static int wrong(operation op, const operands& x, format_id wider, std::uint64_t between) {
    int all = 0;
    for (const overflow policy : {overflow::ieee, overflow::saturate}) {
      const cast_rule rule{rounding::nearest_even, policy, nan_policy::canonical};
      const auto twice = convert_code(wider, GetParam(), between, rule).code;
      const auto once = compute(op, x, GetParam(), rule).code;
      if (twice == once) continue;
      ++all;
      ADD_FAILURE() << name(op) << " of " << x.a.code << ", " << x.b.code << ", " << x.c.code
                    << " in " << name(wider) << ": " << twice << " instead of " << once;
    }
    return all;
  }

  /// The exact fused result rounded to odd in binary32: of the neighbours the one whose last bit is
  /// 1; an exact zero is that of the upper one.
  static std::uint64_t fused_to_odd(const operands& x) {
    const auto rounded = [&](rounding mode) {
      return compute(operation::fma, x, format_id::fp32, {mode}).code;
    };
    const std::uint64_t below = rounded(rounding::downward);
    return (below & 1) != 0 ? below : rounded(rounding::upward);
  }
};

TEST_P(TwoRoundings, SumsAndProductsInBinary16) {
  for (const operation op : {operation::add, operation::sub, operation::mul}) {
    for (std::uint64_t i = 0; i < 65536; ++i) {
      const operands x = at(i & 0xFF, i >> 8);
      const auto between = compute(op, x, format_id::fp16, {}).code;
      ASSERT_EQ(wrong(op, x, format_id::fp16, between), 0);
    }
  }
}

TEST_P(TwoRoundings, QuotientsAndRootsInBinary32) {
  for (const operation op : {operation::div, operation::sqrt}) {
    for (std::uint64_t i = 0; i < 65536; ++i) {
      const operands x = at(i & 0xFF, i >> 8);
      const auto between = compute(op, x, format_id::fp32, {}).code;
      ASSERT_EQ(wrong(op, x, format_id::fp32, between), 0);
    }
  }
}

TEST_P(TwoRoundings, FusedStepsInBinary32) {
  const bool nearest = GetParam() == format_id::e4m3;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 24; i += effort_divisor) {
    const operands x = at(i & 0xFF, i >> 8 & 0xFF, i >> 16);
    const auto between =
        nearest ? compute(operation::fma, x, format_id::fp32, {}).code : fused_to_odd(x);
    ASSERT_EQ(wrong(operation::fma, x, format_id::fp32, between), 0);
  }
}

// What the tests above would see: a fused step that needs its rounding to odd.
TEST(OneRoundingTooMany, ShowsInE5m2) {
  const operands x{{format_id::e5m2, 0x4E}, {format_id::e5m2, 0x4E}, {format_id::e5m2, 0x01}};
  const auto nearest = compute(operation::fma, x, format_id::fp32, {}).code;
  EXPECT_EQ(convert_code(format_id::fp32, format_id::e5m2, nearest, {}).code, 0x60u);  // 512
  EXPECT_EQ(compute(operation::fma, x, format_id::e5m2, {}).code, 0x61u);              // 640
}

INSTANTIATE_TEST_SUITE_P(Formats, TwoRoundings, ::testing::Values(format_id::e4m3, format_id::e5m2),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace samebits
