// Tests of the oracle's quantization by a law of contract §7: a tile that is quantized again keeps its
// values. engine.quantize_oracle compares the library with the oracle.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "oracle/elementary.hpp"
#include "oracle/quantize.hpp"
#include "oracle/test_support.hpp"

namespace samebits::oracle {
namespace {

using words = std::vector<std::uint32_t>;

constexpr tiling tiles{2, 16, 1, 16};
constexpr std::uint32_t smallest_scale = 0x00400000;

/// Numbers of both signs up to the binade of an exponent field, and zeros.
words numbers(std::uint32_t field, std::uint64_t seed) {
  words x;
  for (const std::uint64_t random : testing::random_codes(tiles.rows * tiles.columns, 64, seed)) {
    const auto below = static_cast<std::uint32_t>(random >> 32) % 12;
    const std::uint32_t own = below == 11 || below > field ? 0 : field - below;
    x.push_back((static_cast<std::uint32_t>(random) & 0x807FFFFFu) | own << 23);
  }
  return x;
}

bool has_infinity(const words& x) {
  return std::any_of(x.begin(), x.end(), [](std::uint32_t e) { return e << 1 == 0xFF000000; });
}

/// Whether a tile of the smallest scale has only zeros as values.
bool vanished(const words& values, const quantized& q, std::size_t tile) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(tile * tiles.columns);
  return q.scales[tile] == smallest_scale &&
         std::all_of(first, first + tiles.columns, [](std::uint32_t x) { return x << 1 == 0; });
}

class Requantize : public ::testing::TestWithParam<std::tuple<const char*, scale_rule>> {};

TEST_P(Requantize, LosesNothing) {
  const format& f = format_named(std::get<0>(GetParam()));
  quantize_rule rule;
  rule.scale.rule = std::get<1>(GetParam());
  const bool same_codes =
      rule.scale.rule == scale_rule::mx_floor || rule.scale.rule == scale_rule::mx_even;
  int checked = 0;
  for (std::uint32_t field = 0; field <= 254; field += field < 6 ? 1 : 4) {
    const quantized q = quantize(fp32(), f, numbers(field, field), tiles, rule);
    const words once = dequantize(f, fp32(), q.codes, q.scales, tiles);
    if (has_infinity(once)) continue;
    const quantized again = quantize(fp32(), f, once, tiles, rule);
    ASSERT_EQ(dequantize(f, fp32(), again.codes, again.scales, tiles), once) << field;
    EXPECT_EQ(again.statistics.error_energy, 0u);
    EXPECT_EQ(again.statistics.overflowed + again.statistics.underflowed, 0u);
    for (std::size_t i = 0; same_codes && i < q.scales.size(); ++i) {
      EXPECT_EQ(again.codes, q.codes) << field;
      EXPECT_TRUE(again.scales[i] == q.scales[i] || vanished(once, q, i)) << field;
    }
    quantize_rule given = rule;  // with the stored scales
    for (const std::uint32_t s : q.scales) {
      given.inverse_scales.push_back(divide32(0x3F800000, s));
    }
    const quantized kept = quantize(fp32(), f, once, tiles, given);
    EXPECT_EQ(kept.codes, q.codes) << field;
    EXPECT_EQ(kept.scales, q.scales) << field;
    ++checked;
  }
  EXPECT_GT(checked, 60);
}

INSTANTIATE_TEST_SUITE_P(
    Oracle, Requantize,
    ::testing::Combine(::testing::Values("e4m3", "e5m2", "e2m1", "e2m3", "e3m2"),
                       ::testing::Values(scale_rule::pow2, scale_rule::te_pow2,
                                         scale_rule::mx_floor, scale_rule::mx_ceil,
                                         scale_rule::mx_even, scale_rule::mx_rceil)),
    [](const auto& tested) {
      return std::string(std::get<0>(tested.param)) + "_" +
             std::string(name(std::get<1>(tested.param)));
    });

}  // namespace
}  // namespace samebits::oracle
