// What each element counts as in the statistics of a quantization, and how counts are combined.
#include "numerics/quantize/statistics.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>

namespace samebits::numerics {
namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr std::uint32_t canonical_nan = 0x7FFFFFFFu;

/// An element that became `code`, without overflow.
quantized_element element(float x, std::uint32_t code) {
  const bool zero = (code & 0x7F) == 0;
  return {bits(x), bits(x), code, zero ? code << 24 : bits(x), false};
}

TEST(QuantizeStatistics, EachKindOfElementCountsOnce) {
  quantize_counts c;
  c.add(element(0.0f, 0x00));
  c.add(element(-0.0f, 0x80));
  c.add(element(inf, 0x7E));
  c.add(element(-inf, 0xFE));
  c.add(element(0.5f, 0x30));
  c.add(element(-0.25f, 0x80));  // became zero
  c.add(element(0.125f, 0x02));
  EXPECT_EQ(c.zeros, 2u);
  EXPECT_EQ(c.inf, 2u);
  EXPECT_EQ(c.nan, 0u);
  EXPECT_EQ(c.underflowed, 1u);
  EXPECT_EQ(c.saturated, 0u);
  EXPECT_EQ(c.amax, bits(inf));
  EXPECT_EQ(c.min_nonzero, bits(0.125f));
}

TEST(QuantizeStatistics, NothingCounted) {
  const quantize_counts c;
  EXPECT_EQ(c.amax, 0u);
  EXPECT_EQ(c.min_nonzero, quantize_counts::none);
}

TEST(QuantizeStatistics, NanIsTheLargestMagnitudeAndCanonical) {
  quantize_counts c;
  c.add({0xFF800001u, 0, 0x7F, 0, false});
  c.add(element(3.0f, 0x44));
  EXPECT_EQ(c.nan, 1u);
  EXPECT_EQ(c.amax, canonical_nan);
  EXPECT_EQ(c.min_nonzero, bits(3.0f));
}

TEST(QuantizeStatistics, SaturatesByTheCastOrTheScale) {
  quantize_counts c;
  c.add({bits(500.0f), bits(500.0f), 0x7E, bits(448.0f), true});
  c.add({bits(1e38f), bits(inf), 0x7E, bits(448.0f), false});
  c.add({bits(448.0f), bits(448.0f), 0x7E, bits(448.0f), false});
  c.add({bits(inf), bits(inf), 0x7E, bits(448.0f), true});  // was not finite before
  EXPECT_EQ(c.saturated, 2u);
  EXPECT_EQ(c.inf, 1u);
}

TEST(QuantizeStatistics, JoinAddsCountsAndKeepsExtremes) {
  quantize_counts a{1, 2, 3, 4, 5, bits(1.0f), bits(0.5f)};
  const quantize_counts b{10, 20, 30, 40, 50, bits(2.0f), bits(0.25f)};
  a.combine(b);
  EXPECT_EQ(a.zeros, 11u);
  EXPECT_EQ(a.nan, 22u);
  EXPECT_EQ(a.inf, 33u);
  EXPECT_EQ(a.underflowed, 44u);
  EXPECT_EQ(a.saturated, 55u);
  EXPECT_EQ(a.amax, bits(2.0f));
  EXPECT_EQ(a.min_nonzero, bits(0.25f));
  a.combine(quantize_counts{});
  EXPECT_EQ(a.amax, bits(2.0f));
  EXPECT_EQ(a.min_nonzero, bits(0.25f));
}

TEST(QuantizeStatistics, SquaresAreOfFinitePairs) {
  EXPECT_TRUE(adds_squares(bits(1.0f), bits(-2.0f)));
  EXPECT_TRUE(adds_squares(bits(-std::numeric_limits<float>::max()), 0));
  EXPECT_FALSE(adds_squares(bits(inf), bits(1.0f)));
  EXPECT_FALSE(adds_squares(bits(1.0f), bits(-inf)));
  EXPECT_FALSE(adds_squares(canonical_nan, 0));
  EXPECT_FALSE(adds_squares(0, canonical_nan));
}

}  // namespace
}  // namespace samebits::numerics
