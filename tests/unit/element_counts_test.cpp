// Element counts of every code of the formats that are reduced, against the codes' values.
#include "numerics/bits/element_counts.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "numerics/bits/decode.hpp"

namespace samebits::numerics {
namespace {

/// The counts of one code by its value in binary32.
code_counts by_value(format_id format, std::uint32_t code) {
  const float x = std::bit_cast<float>(decode<std::uint32_t>(spec_of(format), code));
  const float min_normal = std::ldexp(1.0f, 1 - spec_of(format).bias);
  return {std::isnan(x) ? 1u : 0u, std::isinf(x) ? 1u : 0u, x == 0 ? 1u : 0u,
          x != 0 && std::fabs(x) < min_normal ? 1u : 0u};
}

void expect_same(const code_counts& a, const code_counts& b, format_id format, std::uint32_t code) {
  EXPECT_EQ(a.nan, b.nan) << name(format) << ' ' << code;
  EXPECT_EQ(a.inf, b.inf) << name(format) << ' ' << code;
  EXPECT_EQ(a.zeros, b.zeros) << name(format) << ' ' << code;
  EXPECT_EQ(a.subnormals, b.subnormals) << name(format) << ' ' << code;
}

TEST(ElementCounts, EveryNarrowCodeCountsAsItsValue) {
  for (const format_id format :
       {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2}) {
    const std::uint32_t codes = std::uint32_t{1} << spec_of(format).storage_bits;
    for (std::uint32_t code = 0; code < codes; ++code) {
      code_counts counts;
      counts.add(spec_of(format), code);
      expect_same(counts, by_value(format, code), format, code);
    }
  }
}

TEST(ElementCounts, BordersOfBinary32) {
  constexpr std::uint32_t borders[] = {0,          1,          0x007FFFFF, 0x00800000, 0x3F800000,
                                       0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FFFFFFF};
  for (const std::uint32_t magnitude : borders) {
    for (const std::uint32_t code : {magnitude, magnitude | 0x80000000u}) {
      code_counts counts;
      counts.add(spec_of(format_id::fp32), code);
      expect_same(counts, by_value(format_id::fp32, code), format_id::fp32, code);
    }
  }
}

TEST(ElementCounts, AddsUpAndIgnoresHigherBits) {
  code_counts counts;
  for (const std::uint32_t code : {0x7Fu, 0xFFu, 0x00u, 0x80u, 0x180u, 0x01u, 0x38u}) {
    counts.add(spec_of(format_id::e4m3), code);
  }
  EXPECT_EQ(counts.nan, 2u);
  EXPECT_EQ(counts.inf, 0u);
  EXPECT_EQ(counts.zeros, 3u);
  EXPECT_EQ(counts.subnormals, 1u);
}

}  // namespace
}  // namespace samebits::numerics
