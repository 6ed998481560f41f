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
constexpr std::uint32_t nan = 0xFF800001, canonical_nan = 0x7FFFFFFF, none = quantize_counts::none;

void expect_counts(const quantize_counts& got, const quantize_counts& expected) {
  const auto all = [](const quantize_counts& c) {
    return std::tie(c.zeros, c.nan, c.inf, c.underflowed, c.saturated, c.amax, c.min_nonzero);
  };
  EXPECT_TRUE(all(got) == all(expected));
}

TEST(QuantizeStatistics, EachElementCountsAsOneKind) {
  const struct {
    quantized_element element;
    quantize_counts expected;
  } rows[] = {
      {{bits(-0.0f), bits(-0.0f), 0x00, bits(-0.0f), false}, {1, 0, 0, 0, 0, 0, none}},
      {{bits(-inf), bits(-inf), 0x7E, bits(-448.0f), false}, {0, 0, 1, 0, 0, bits(inf), none}},
      {{bits(inf), bits(inf), 0x7E, bits(448.0f), true}, {0, 0, 1, 0, 0, bits(inf), none}},
      {{nan, nan, 0x7F, canonical_nan, false}, {0, 1, 0, 0, 0, canonical_nan, none}},
      {{bits(0.5f), bits(0.5f), 0x30, bits(0.5f), false}, {0, 0, 0, 0, 0, bits(0.5f), bits(0.5f)}},
      {{bits(-2.0f), bits(0.1f), 0x00, bits(-0.0f), false},
       {0, 0, 0, 1, 0, bits(2.0f), bits(2.0f)}},
      {{bits(2.0f), bits(0.1f), 0x01, bits(-0.0f), false}, {0, 0, 0, 1, 0, bits(2.0f), bits(2.0f)}},
      {{bits(2.0f), bits(500.0f), 0x7E, bits(448.0f), true},
       {0, 0, 0, 0, 1, bits(2.0f), bits(2.0f)}},
      {{bits(2.0f), bits(inf), 0x7E, bits(448.0f), false}, {0, 0, 0, 0, 1, bits(2.0f), bits(2.0f)}},
      {{bits(448.0f), bits(448.0f), 0x7E, bits(448.0f), false},
       {0, 0, 0, 0, 0, bits(448.0f), bits(448.0f)}},
  };
  quantize_counts added, combined;
  for (const auto& [element, expected] : rows) {
    quantize_counts one;
    one.add(element);
    expect_counts(one, expected);
    added.add(element);
    combined.combine(one);
    expect_counts(combined, added);
  }
  expect_counts(added, {1, 1, 2, 2, 2, canonical_nan, bits(0.5f)});
}

TEST(QuantizeStatistics, SquaresAreOfFinitePairs) {
  EXPECT_TRUE(adds_squares(bits(1.0f), bits(-2.0f)));
  EXPECT_TRUE(adds_squares(bits(-std::numeric_limits<float>::max()), 0));
  for (const std::uint32_t bad : {bits(inf), bits(-inf), nan, canonical_nan}) {
    EXPECT_FALSE(adds_squares(bad, 0));
    EXPECT_FALSE(adds_squares(0, bad));
  }
}

}  // namespace
}  // namespace samebits::numerics
