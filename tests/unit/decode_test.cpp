// decode: extremes and specials of every format, and the two widths against each other.
#include "numerics/bits/decode.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "samebits/scalar.hpp"

namespace samebits {
namespace {

using enum format_id;

static_assert(decode<e4m3>(0b0'1111'110) == 448.0f);
static_assert(decode<e4m3>(0b1'0000'001) == -0x1p-9f);
static_assert(decode<e5m2>(0b0'11110'11) == 57344.0f);
static_assert(decode<fp16>(0x0001) == 0x1p-24f);
static_assert(decode<bf16>(0x0001) == 0x1p-133f);
static_assert(decode<e2m1>(0xF5) == 3.0f, "bits above the code are ignored");
static_assert(decode<e2m3>(0x1F) == 7.5f && decode<e3m2>(0x1F) == 28.0f);
static_assert(decode<e4m3fnuz>(0x7F) == 240.0f && decode<e5m2fnuz>(0x7F) == 57344.0f);
static_assert(decode<e8m0>(0x00) == 0x1p-127f && decode<e8m0>(0xFE) == 0x1p127f);
static_assert(decode<tf32>(0x3F801FFF) == 1.0f, "tf32 ignores the low 13 bits");
static_assert(convert_code<fp32, tf32>(0x7F800001) == 0x7F800000u, "of a NaN too");
static_assert(convert_code<fp32, e4m3>(0xFF) == 0x7FFFFFFFu);
static_assert(convert_code<fp32, e5m2>(0xFC) == 0xFF800000u);
static_assert(convert_code<fp32, e8m0>(0xFF) == 0x7FFFFFFFu);

TEST(Decode, BothWidthsGiveTheSameValue) {
  std::uint64_t compared = 0;
  for (int i = 1; i < format_count; ++i) {
    const format_spec f = spec_of(format_at(i));
    const std::uint64_t stride = f.storage_bits == 32 ? 65521 : 1;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << f.storage_bits; code += stride) {
      const auto narrow = std::bit_cast<float>(
          numerics::decode<std::uint32_t>(f, static_cast<std::uint32_t>(code)));
      const auto wide = std::bit_cast<double>(numerics::decode<std::uint64_t>(f, code));
      ++compared;
      ASSERT_EQ(std::isnan(narrow), std::isnan(wide)) << f.name << " " << code;
      ASSERT_EQ(std::signbit(narrow), std::signbit(wide)) << f.name << " " << code;
      if (!std::isnan(narrow)) {
        ASSERT_EQ(static_cast<double>(narrow), wide) << f.name << " " << code;
      }
    }
  }
  EXPECT_GT(compared, 260'000u);
}

}  // namespace
}  // namespace samebits
