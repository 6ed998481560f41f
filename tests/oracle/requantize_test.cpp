// Tests of the oracle's quantization by a law: requantizing with power-of-two scales loses nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "oracle/quantize.hpp"
#include "oracle/test_support.hpp"

namespace samebits::oracle {
namespace {

constexpr tiling one_row{1, 16, 1, 16};
const format& fp32 = format_named("fp32");

/// Codes of finite values, the larger the cap the wider their range.
std::vector<std::uint8_t> finite_codes(const format& f, std::uint64_t seed) {
  std::vector<std::uint8_t> result;
  for (const std::uint64_t c : testing::random_codes(one_row.columns, 8, seed)) {
    const std::uint64_t cap = std::min<std::uint64_t>(f.max_finite, 8 + seed % 128);
    result.push_back(static_cast<std::uint8_t>(c / 128 * 128 + c % 128 % (cap + 1)));
  }
  return result;
}

/// Contract §7, requantization: from any power-of-two scale, subnormal products and the raised
/// least scale among them.
void check_law(const format& f) {
  int checked = 0;
  for (std::uint32_t field = 1; field <= 254; ++field) {
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::vector<std::uint8_t> codes = finite_codes(f, 4 * field + round);
      const std::vector<std::uint32_t> scale{field * 0x00800000u};
      const std::vector<std::uint32_t> x = dequantize(f, fp32, codes, scale, one_row);
      const auto is_infinite = [](std::uint32_t e) { return e % 0x80000000u == 0x7F800000u; };
      if (std::any_of(x.begin(), x.end(), is_infinite)) continue;
      quantize_rule rule;
      rule.scale.rule = scale_rule::pow2;
      const quantized q = quantize(fp32, f, x, one_row, rule);
      ASSERT_EQ(dequantize(f, fp32, q.codes, q.scales, one_row), x)
          << f.name << " scale field " << field << " round " << round;
      EXPECT_EQ(q.statistics.error_energy, 0u);
      EXPECT_EQ(q.statistics.saturated + q.statistics.underflowed, 0u);
      ++checked;
    }
  }
  EXPECT_GT(checked, 900);
}

TEST(OracleRequantize, LosesNothing) {
  check_law(format_named("e4m3"));
  check_law(format_named("e5m2"));
}

}  // namespace
}  // namespace samebits::oracle
