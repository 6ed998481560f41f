// Rotary tables: recorded results, angles in binary32.
#include "samebits/rotary.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "numerics/functions/rotary.hpp"
#include "samebits/convert.hpp"
#include "samebits/types.hpp"

namespace samebits {
namespace {

constexpr auto lowest = std::numeric_limits<std::int64_t>::min();
constexpr auto highest = std::numeric_limits<std::int64_t>::max();
constexpr double largest = std::numeric_limits<double>::max();

/// Codes of cos and sin.
struct codes {
  std::uint32_t cos, sin;
  friend bool operator==(const codes&, const codes&) = default;
};
void PrintTo(const codes& c, std::ostream* out) {
  *out << std::hex << "cos " << c.cos << " sin " << c.sin << std::dec;
}

/// cos and sin of position * base^(-i / n), or of position * base if n is 0, by MPFR 4.2.
struct recorded {
  double base;
  std::uint32_t i, n;
  std::int64_t position;
  codes fp32, fp16, bf16;
};
constexpr std::int64_t far = 7375356370420187083;
constexpr recorded results[] = {
    {10000, 0, 64, 1, {0x3F0A5140, 0x3F576AA4}, {0x3853, 0x3ABB}, {0x3F0A, 0x3F57}},
    {10000, 1, 64, 1, {0x3F25DD29, 0x3F43001C}, {0x392F, 0x3A18}, {0x3F26, 0x3F43}},
    {10000, 63, 64, 1, {0x3F800000, 0x38F22CE3}, {0x3C00, 0x0791}, {0x3F80, 0x38F2}},
    {10000, 63, 64, 131071, {0xBF573BB6, 0x3F0A9A3C}, {0xBABA, 0x3855}, {0xBF57, 0x3F0B}},
    {500000, 17, 64, -8191, {0x3F6BC956, 0x3EC76814}, {0x3B5E, 0x363B}, {0x3F6C, 0x3EC7}},
    {500000, 63, 64, 1, {0x3F800000, 0x3624C2FF}, {0x3C00, 0x0029}, {0x3F80, 0x3625}},
    {1e6, 5, 20, 1000003, {0x3F6BC608, 0xBEC777B2}, {0x3B5E, 0xB63C}, {0x3F6C, 0xBEC7}},
    {0x1.8p+0, 1, 3, 7, {0x3F7C63FE, 0xBE2B58DD}, {0x3BE3, 0xB15B}, {0x3F7C, 0xBE2B}},
    {0x1p+0, 2, 3, 355, {0xBF800000, 0xB7FCDE82}, {0xBC00, 0x81FA}, {0xBF80, 0xB7FD}},
    {0x1p+0, 0, 1, -710, {0x3F800000, 0xB87CDE82}, {0x3C00, 0x83F3}, {0x3F80, 0xB87D}},
    {0x1p+1, 1, 4, lowest, {0xBF565DEE, 0xBF0BF04C}, {0xBAB3, 0xB860}, {0xBF56, 0xBF0C}},
    {10000, 1, 2, highest, {0x3F2E32BA, 0x3F3B97B8}, {0x3972, 0x39DD}, {0x3F2E, 0x3F3C}},
    {largest, 1, 2, 3, {0x3F800000, 0}, {0x3C00, 0}, {0x3F80, 0}},
    {largest, ~1u, ~0u, 1l << 62, {0x3F800000, 0}, {0x3C00, 0}, {0x3F80, 0}},
    {0x1p+298, 1, 2, -1, {0x3F800000, 0x80000001}, {0x3C00, 0x8000}, {0x3F80, 0x8000}},
    {0x1p+300, 1, 2, 1, {0x3F800000, 0}, {0x3C00, 0}, {0x3F80, 0}},
    {0x1p+300, 1, 2, 3, {0x3F800000, 1}, {0x3C00, 0}, {0x3F80, 0}},
    {0x1p+24, 1, 2, 1, {0x3F800000, 0x39800000}, {0x3C00, 0x0C00}, {0x3F80, 0x3980}},
    {0x1.47ae147ae147bp-7,
     0,
     0,
     12345,
     {0xBF197A98, 0xBF4CE40B},
     {0xB8CC, 0xBA67},
     {0xBF19, 0xBF4D}},
    {-0x1p-2, 0, 0, -3, {0x3F3B4FF6, 0x3F2E7FE1}, {0x39DA, 0x3974}, {0x3F3B, 0x3F2E}},
    {0x1.921fb54442d18p+0, 0, 0, 1, {0x248D3132, 0x3F800000}, {0, 0x3C00}, {0x248D, 0x3F80}},
    {0x1.921fb54442d18p+0, 0, 0, -2, {0xBF800000, 0xA50D3132}, {0xBC00, 0x8000}, {0xBF80, 0xA50D}},
    {0x1.6ac5b262ca1ffp+849, 0, 0, 1, {0xA10A5739, 0x3F800000}, {0x8000, 0x3C00}, {0xA10A, 0x3F80}},
    {largest, 0, 0, lowest, {0xBE1CFE58, 0xBF7CF934}, {0xB0E8, 0xBBE8}, {0xBE1D, 0xBF7D}},
    {0x1p-1074, 0, 0, lowest, {0x3F800000, 0x80000000}, {0x3C00, 0x8000}, {0x3F80, 0x8000}},
    {0x1p-1074, 0, 0, -1, {0x3F800000, 0x80000000}, {0x3C00, 0x8000}, {0x3F80, 0x8000}},
    {0x1p-150, 0, 0, 1, {0x3F800000, 0}, {0x3C00, 0}, {0x3F80, 0}},
    {0x1.8p-149, 0, 0, 1, {0x3F800000, 1}, {0x3C00, 0}, {0x3F80, 0}},
    {0x1p-24, 0, 0, 1, {0x3F800000, 0x33800000}, {0x3C00, 0x0001}, {0x3F80, 0x3380}},
    {0x1.3170fp+63, 0, 0, 1, {0x3F7F14BB, 0x3DAD60F7}, {0x3BF9, 0x2D6B}, {0x3F7F, 0x3DAD}},
    {0x1.6c6cbep+22, 0, 0, 1, {0x3F68815F, 0x3ED64394}, {0x3B44, 0x36B2}, {0x3F69, 0x3ED6}},
    {1e12, 63, 64, 1, {0x3F800000, 0x2BD8B9B3}, {0x3C00, 0}, {0x3F80, 0x2BD9}},
    {1e12, 63, 64, -8191, {0x3F800000, 0xB258B2ED}, {0x3C00, 0x8000}, {0x3F80, 0xB259}},
    {0x1.7e43c8800759cp+996, 1, 2, 77, {0x3F800000, 0}, {0x3C00, 0}, {0x3F80, 0}},
    {0x1.8c8dac6a0342ap+398, 1, 3, 3, {0x3F800000, 0x00034447}, {0x3C00, 0}, {0x3F80, 0x0003}},
    {10000, 9, 64, 976115, {0xBECB257A, 0x3F6AFCAC}, {0xB659, 0x3B58}, {0xBECB, 0x3F6B}},
    {10000, 9, 64, 2181527, {0x3F1617CB, 0x3F4F624B}, {0x38B1, 0x3A7B}, {0x3F16, 0x3F4F}},
    // 2^-110 behind a multiple of pi, and of pi / 2: truncated turns lie before it
    {0x1.b602f27db155p-25, 0, 0, far, {0xBF800000, 0x882FCC23}, {0xBC00, 0x8000}, {0xBF80, 0x8830}},
    {0x1.b602f27db155p-26, 0, 0, far, {0x07AFCC23, 0xBF800000}, {0, 0xBC00}, {0x07B0, 0xBF80}},
};

/// A table of one row and column.
codes entry(std::int64_t position, const rotary_options& options, format_id format) {
  codes c{};
  rotary_table({&position, 1}, view_of_codes(format, &c.cos, 1, 1),
               view_of_codes(format, &c.sin, 1, 1), options);
  return c;
}

/// Tables of many entries.
struct table {
  table(std::int64_t rows, std::int64_t columns)
      : positions(static_cast<std::size_t>(rows)),
        cos(static_cast<std::size_t>(rows * columns)),
        sin(cos.size()),
        rows_(rows),
        columns_(columns) {
    std::iota(positions.begin(), positions.end(), 0);
  }
  void compute(const rotary_options& options) {
    rotary_table(positions, view_of(cos.data(), rows_, columns_),
                 view_of(sin.data(), rows_, columns_), options);
  }
  [[nodiscard]] bool has_bits_of(const table& other) const {
    const std::size_t bytes = cos.size() * sizeof(float);
    return std::memcmp(cos.data(), other.cos.data(), bytes) == 0 &&
           std::memcmp(sin.data(), other.sin.data(), bytes) == 0;
  }

  std::vector<std::int64_t> positions;
  std::vector<float> cos, sin;

 private:
  std::int64_t rows_, columns_;
};

TEST(Rotary, HasTheRecordedResults) {
  namespace r = numerics::rotary;
  for (const recorded& e : results) {
    const std::string text = std::to_string(e.base) + " " + std::to_string(e.i) + "/" +
                             std::to_string(e.n) + " " + std::to_string(e.position);
    if (e.n == 0) {
      const rotary_options options{.frequencies = {&e.base, 1}};
      EXPECT_EQ(entry(e.position, options, format_id::fp32), e.fp32) << text;
      EXPECT_EQ(entry(e.position, options, format_id::fp16), e.fp16) << text;
      EXPECT_EQ(entry(e.position, options, format_id::bf16), e.bf16) << text;
      continue;
    }
    const r::frequency f{std::bit_cast<std::uint64_t>(e.base), e.i, e.n};
    const auto turns = r::turns_of<r::few_words + r::guard_words>(f);
    const auto steps = static_cast<std::uint64_t>(e.position);
    const bool negative = e.position < 0;
    const auto expect = [&](format_id to, const codes& expected) {
      const auto got = r::codes_of_product(f, turns, negative ? 0 - steps : steps, negative, to);
      ASSERT_TRUE(got) << text;
      EXPECT_EQ((codes{got->cos, got->sin}), expected) << text << " " << name(to);
    };
    expect(format_id::fp32, e.fp32);
    expect(format_id::fp16, e.fp16);
    expect(format_id::bf16, e.bf16);
  }
}

TEST(Rotary, EveryPrecisionGivesTheRecordedResults) {
  namespace r = numerics::rotary;
  int decided = 0;  // of 39: 22 by 64 bits, 35 by 256 bits, all by 1024 bits
  const auto check = [&]<int W>(const recorded& e, std::integral_constant<int, W>) {
    const r::frequency f{std::bit_cast<std::uint64_t>(e.base), e.i, e.n};
    const auto steps = static_cast<std::uint64_t>(e.position);
    const bool negative = (e.position < 0) != (e.base < 0);
    const auto got = r::decided_codes<W>(
        r::turns_at(r::turns_of<W + r::guard_words>(f), e.position < 0 ? 0 - steps : steps),
        negative, format_id::fp32);
    if (!got) return;
    ++decided;
    EXPECT_EQ((codes{got->cos, got->sin}), e.fp32)
        << W << " words, " << e.base << " " << e.position;
  };
  for (const recorded& e : results) check(e, std::integral_constant<int, r::few_words>{});
  EXPECT_EQ(decided, 22);
  for (const recorded& e : results) check(e, std::integral_constant<int, r::more_words>{});
  EXPECT_EQ(decided, 22 + 35);
  for (const recorded& e : results) check(e, std::integral_constant<int, r::most_words>{});
  EXPECT_EQ(decided, 22 + 35 + 39);
}

TEST(Rotary, ATableHasTheEntriesOfItsFrequencies) {
  table all(300, 10);
  all.compute({.base = 1024});  // base^(-i / 10) = 2^-i
  std::vector<double> frequencies(10);
  for (int i = 0; i < 10; ++i) frequencies[static_cast<std::size_t>(i)] = std::ldexp(1.0, -i);
  table same(300, 10);
  same.compute({.frequencies = frequencies});
  EXPECT_TRUE(same.has_bits_of(all));
  EXPECT_EQ(entry(299, {.frequencies = {&frequencies[3], 1}}, format_id::fp32),
            (codes{std::bit_cast<std::uint32_t>(all.cos[2993]),
                   std::bit_cast<std::uint32_t>(all.sin[2993])}));
}

TEST(Rotary, TheUsualTable) {
  table usual(2048, 64);
  usual.compute({});
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < usual.cos.size(); ++i) {
    sum = sum * 0x9E3779B97F4A7C15u + std::bit_cast<std::uint32_t>(usual.cos[i]);
    sum = sum * 0x9E3779B97F4A7C15u + std::bit_cast<std::uint32_t>(usual.sin[i]);
  }
  EXPECT_EQ(sum, 0x7FDF2E46A18BF5EBu);  // of a table in which MPFR judged every entry
}

TEST(Rotary, AnAngleOfZero) {
  const double zeros[] = {0.0, -0.0};
  for (const double& zero : zeros) {
    EXPECT_EQ(entry(5, {.frequencies = {&zero, 1}}, format_id::fp32), (codes{0x3F800000, 0}));
    EXPECT_EQ(
        entry(5, {.frequencies = {&zero, 1}, .angle = rotary_angle::binary32}, format_id::bf16),
        (codes{0x3F80, std::signbit(zero) ? 0x8000u : 0u}));
  }
  EXPECT_EQ(entry(0, {}, format_id::fp16), (codes{0x3C00, 0}));
  const double tiny = 0x1p-149;
  EXPECT_EQ(
      entry(-1, {.frequencies = {&tiny, 1}, .angle = rotary_angle::binary32}, format_id::fp32),
      (codes{0x3F800000, 0x80000001}));
}

TEST(Rotary, NegativePositionsNegateSin) {
  for (const rotary_angle angle : {rotary_angle::exact, rotary_angle::binary32}) {
    for (const double base : {10000.0, 1.0}) {
      const codes forward = entry(12345, {.base = base, .angle = angle}, format_id::fp32);
      const codes backward = entry(-12345, {.base = base, .angle = angle}, format_id::fp32);
      EXPECT_EQ(backward, (codes{forward.cos, forward.sin ^ 0x80000000u}));
    }
  }
}

TEST(Rotary, AnglesInBinary32AreRoundedTwice) {
  const double frequency = 0.1;  // not a binary32 number
  for (const std::int64_t position : {3l, 1000l, (1l << 24) + 1, (1l << 40) + 12345, -77l}) {
    const volatile float f = 0.1f;
    const volatile auto p = static_cast<float>(position);
    const volatile float rounded = p * f;
    const double angle = static_cast<double>(rounded);
    for (const format_id format : {format_id::fp32, format_id::fp16, format_id::bf16}) {
      const rotary_options binary32{.frequencies = {&frequency, 1},
                                    .angle = rotary_angle::binary32};
      EXPECT_EQ(entry(position, binary32, format), entry(1, {.frequencies = {&angle, 1}}, format));
    }
  }
  const double big = 0x1p127;
  const rotary_options overflowing{.frequencies = {&big, 1}, .angle = rotary_angle::binary32};
  EXPECT_EQ(entry(2, overflowing, format_id::fp32), (codes{0x7FFFFFFF, 0x7FFFFFFF}));
  EXPECT_EQ(entry(2, overflowing, format_id::bf16), (codes{0x7FFF, 0x7FFF}));
}

TEST(Rotary, FrequenciesOfABaseAreRoundedOnce) {
  table rounded(50, 64);
  rounded.compute({.angle = rotary_angle::binary32});
  // RN32(10000^(-i / 64)) of columns 1, 32 and 63, by MPFR.
  const struct {
    std::size_t column;
    double frequency;
  } known[] = {{1, 0x1.bb5faep-1}, {32, 0x1.47ae14p-7}, {63, 0x1.e459c6p-14}};
  for (const auto& k : known) {
    const rotary_options one{.frequencies = {&k.frequency, 1}, .angle = rotary_angle::binary32};
    for (const std::size_t row : {1u, 7u, 49u}) {
      const codes expected = entry(static_cast<std::int64_t>(row), one, format_id::fp32);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded.sin[row * 64 + k.column]), expected.sin);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(rounded.cos[row * 64 + k.column]), expected.cos);
    }
  }
}

}  // namespace
}  // namespace samebits
