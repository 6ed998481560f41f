// Scales of tiles: edges, bounds and policies against the oracle, whose own edges are worked by hand in
// tests/oracle/scale_test.cpp. exhaustive.scales_of_* compares amaxes of all magnitudes with the oracle.
#include "numerics/quantize/scale.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "numerics/quantize/tile.hpp"
#include "oracle/scale.hpp"

namespace samebits::numerics {
namespace {

constexpr std::uint32_t inf = binary32::inf;
constexpr std::uint32_t nan = binary32::nan;

constexpr tile_amax amax_of(std::uint32_t bits) { return static_cast<tile_amax>(bits); }

constexpr bool is(const tile_scale& s, std::uint32_t dequantization_scale, std::uint32_t factor) {
  return s.dequantization_scale == dequantization_scale && s.factor == factor;
}

/// Elements, bounds and policies at which a step decides: a quotient that overflows, 448 and 57344
/// times powers of two and the numbers above, the ends of e8m0's range, Inf and NaN.
TEST(Scale, EdgesAndPoliciesAreTheOracles) {
  constexpr std::uint32_t elements[] = {0,          1,          0x03E00000, 0x03E00001, 0x04600000,
                                        0x04600001, 0x04600002, 0x07E00000, 0x43800000, 0x43E00000,
                                        0x43E00001, 0x47600000, 0x7F000000, 0x7F7FFFFF, inf,
                                        0xFF800000, 0x7F800001, 0xFFC00001};
  for (const format_id to : {format_id::e4m3, format_id::e5m2}) {
    const oracle::format& exact = oracle::format_named(name(to));
    const auto check = [&](const scale_settings& s) {
      const oracle::scale_settings same = {s.rule, s.nonfinite, s.eps, s.upper_bound,
                                           s.largest_factor};
      for (const std::uint32_t x : elements) {
        const tile_scale got = scale_of(spec_of(to), s, amax_contribution(s.nonfinite, x));
        const oracle::tile_scale expected = oracle::scale_of_tile(same, exact, {&x, 1});
        ASSERT_TRUE(is(got, expected.s, expected.factor))
            << name(to) << " " << name(s.rule) << " " << name(s.nonfinite) << std::hex << " of "
            << x << " eps " << s.eps << " upper " << s.upper_bound << " S " << s.largest_factor;
      }
    };
    for (int m = 0; m < one_level_scale_rules; ++m) {
      for (int p = 0; p < enum_count<nonfinite>; ++p) {
        for (const std::uint32_t eps : {0u, 0x41000000u, 0x43E00000u, 0x44600000u}) {
          for (const std::uint32_t upper : {0x42000000u, 0x43800000u, 0x43E00000u, inf}) {
            for (const std::uint32_t largest : {binary32::max_finite, 0x7F7F0000u}) {
              check({static_cast<scale_rule>(m), static_cast<nonfinite>(p), eps, upper, largest});
            }
          }
        }
      }
    }
  }
}

TEST(Scale, ZeroTilesInE8m0) {
  scale_settings settings = {scale_rule::mx_floor, nonfinite::te};
  settings.scale_of_zeros = 0x00400000u;
  const format_spec to = spec_of(format_id::e4m3);
  EXPECT_TRUE(is(scale_of(to, settings, 0), 0x00400000u, binary32::one));
  EXPECT_TRUE(is(scale_of(to, settings, no_amax), binary32::one, binary32::one));
  EXPECT_EQ(e8m0_of(0x00400000u), 0x00u);
  EXPECT_EQ(e8m0_of(binary32::one), 0x7Fu);
  EXPECT_EQ(e8m0_of(0x7F000000u), 0xFEu);
  EXPECT_EQ(e8m0_of(nan), 0xFFu);
  EXPECT_EQ(e8m0_of(inf), 0xFFu);
}

TEST(Scale, OfNothingLeftAndNaN) {
  EXPECT_EQ(combined(no_amax, 0), 0);
  EXPECT_EQ(combined(amax_of(nan), amax_of(inf)), amax_of(nan));
}

TEST(Scale, ScaledElements) {
  const tile_scale three = {0x40400000u, 0x40400000u};
  EXPECT_EQ(scaled(scale_rule::div, three, binary32::one), 0x3EAAAAABu);
  EXPECT_EQ(scaled(scale_rule::te, three, binary32::one), 0x40400000u);
  EXPECT_EQ(scaled(scale_rule::te, three, 0x80000000u), 0x80000000u);
  EXPECT_EQ(scaled(scale_rule::te, three, 0xFFC00001u), nan);
  EXPECT_EQ(scaled(scale_rule::rcp, {inf, 0}, inf), nan);
  EXPECT_EQ(scaled(scale_rule::div, {inf, inf}, 0xC0400000u), 0x80000000u);
}

}  // namespace
}  // namespace samebits::numerics
