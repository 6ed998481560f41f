// What each element counts as in the statistics of a quantization, and how counts are combined.
#include "numerics/quantize/statistics.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <tuple>

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

void expect_counts(const quantize_counts& got, const quantize_counts& expected) {
  const auto all = [](const quantize_counts& c) {
    return std::tie(c.zeros, c.nan, c.inf, c.underflowed, c.saturated, c.amax, c.min_nonzero);
  };
  EXPECT_TRUE(all(got) == all(expected));
}

TEST(QuantizeStatistics, EachKindOfElementCountsOnce) {
  quantize_counts c;
  expect_counts(c, {0, 0, 0, 0, 0, 0, quantize_counts::none});
  c.add(element(0.0f, 0x00));
  c.add(element(-0.0f, 0x80));
  c.add(element(inf, 0x7E));
  c.add(element(-inf, 0xFE));
  c.add(element(0.5f, 0x30));
  c.add(element(-0.25f, 0x80));  // became zero
  c.add(element(0.125f, 0x02));
  expect_counts(c, {2, 0, 2, 1, 0, bits(inf), bits(0.125f)});
}

TEST(QuantizeStatistics, NanIsTheLargestMagnitudeAndCanonical) {
  quantize_counts c;
  c.add({0xFF800001u, 0, 0x7F, 0, false});
  c.add(element(3.0f, 0x44));
  expect_counts(c, {0, 1, 0, 0, 0, canonical_nan, bits(3.0f)});
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
  const quantize_counts both = {11, 22, 33, 44, 55, bits(2.0f), bits(0.25f)};
  expect_counts(a, both);
  a.combine(quantize_counts{});
  expect_counts(a, both);
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
