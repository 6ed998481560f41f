// Fixed point: every operation against integers of 128 bits, constants, and rounding to binary64.
#include "numerics/functions/fixed_point.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "numerics/functions/fixed_point_constants.hpp"
#include "numerics/functions/rotary.hpp"

namespace samebits {
namespace {

/// The words of a fraction, the first one above the last one.
std::uint64_t bits_of(const numerics::fraction<2>& x) {
  return std::uint64_t{x.word[0]} << 32 | x.word[1];
}
numerics::fraction<2> fraction_of(std::uint64_t bits) {
  return {{static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)}};
}

TEST(FixedPoint, OperationsOfTwoWords) {
  namespace n = numerics;
  using wide = unsigned __int128;
  std::uint64_t a = 0x9E3779B97F4A7C15, b = 0xF39CC0605CEDC834;
  for (int i = 0; i < 200; ++i) {
    a = a * 0xBF58476D1CE4E5B9 + 1;
    b = (b ^ b >> 29) * 0x94D049BB133111EB;
    const auto x = fraction_of(a), y = fraction_of(b);
    EXPECT_EQ(bits_of(n::complement(x)), ~a);
    EXPECT_EQ(bits_of(n::product(x, y)), static_cast<std::uint64_t>(wide{a} * b >> 64));
    std::uint64_t whole = 0;
    EXPECT_EQ(bits_of(n::multiple(x, b, whole)), a * b);
    EXPECT_EQ(whole, static_cast<std::uint64_t>(wide{a} * b >> 64));
    const auto divisor = static_cast<std::uint32_t>(b >> 7) | 1;
    const std::uint32_t rest = static_cast<std::uint32_t>(a >> 9) % divisor;
    EXPECT_EQ(bits_of(n::quotient(x, divisor, rest)),
              static_cast<std::uint64_t>((wide{rest} << 64 | a) / divisor));
    for (const int count : {0, 1, 31, 32, 33, 63, 64, 95}) {
      EXPECT_EQ(bits_of(n::moved_down(x, count)), count < 64 ? a >> count : 0) << count;
      if (count == 0 || count >= 32) continue;
      EXPECT_EQ(bits_of(n::moved_up(x, count)), a << count) << count;
    }
    EXPECT_EQ(bits_of(n::sum(x, y)), a + b < a ? ~std::uint64_t{0} : a + b);
    EXPECT_EQ(bits_of(n::difference(x, y)), a < b ? 0 : a - b);
    EXPECT_EQ(n::first_words<1>(x).word[0], static_cast<std::uint32_t>(a >> 32));
    EXPECT_FALSE(n::is_zero(fraction_of(a >> 32 << 32 | 1)));
  }
  EXPECT_TRUE(n::is_zero(fraction_of(0)));
  EXPECT_FALSE(n::is_zero(fraction_of(1)));
  EXPECT_EQ(bits_of(n::sum(fraction_of(~std::uint64_t{0}), fraction_of(1))), ~std::uint64_t{0});
}

/// |a - b| in ulps of W words, at most 2^32 - 1.
template <int W, int V>
std::uint32_t distance(const numerics::fraction<W>& a, const numerics::fraction<V>& more) {
  const numerics::fraction<W> b = numerics::first_words<W>(more);
  const auto apart = numerics::sum(numerics::difference(a, b), numerics::difference(b, a));
  for (int i = 0; i + 1 < W; ++i) {
    if (apart.word[i] != 0) return ~std::uint32_t{0};
  }
  return apart.word[W - 1];
}

/// Compares series in W words with those in 32 words, whose error is far below an ulp of W words.
template <int W>
void expect_stated_errors(const numerics::fraction<35>& x) {
  const auto turns = numerics::first_words<W + numerics::rotary::guard_words>(x);
  const auto few = numerics::rotary::cosine_and_sine_of<W>(turns);
  const auto many = numerics::rotary::cosine_and_sine_of<32>(x);
  EXPECT_LT(distance<W>(few.cos, many.cos), numerics::rotary::series_error) << W;
  EXPECT_LT(distance<W>(few.sin, many.sin), numerics::rotary::series_error) << W;
  const auto y = numerics::first_words<32>(x);
  // 4 ulps of the series, one of the operand that was cut off, one of the comparison
  EXPECT_LT(distance<W>(numerics::rotary::exp2_of_minus(numerics::first_words<W>(y)),
                        numerics::rotary::exp2_of_minus(y)),
            7u)
      << W;
}

TEST(FixedPoint, SeriesHaveTheStatedErrors) {
  std::uint64_t state = 0x9E3779B97F4A7C15;
  for (int i = 0; i < 40; ++i) {
    numerics::fraction<35> x;
    for (std::uint32_t& word : x.word) {
      state = state * 0xBF58476D1CE4E5B9 + 1;
      word = static_cast<std::uint32_t>(state >> 32);
    }
    expect_stated_errors<2>(x);
    expect_stated_errors<8>(x);
  }
}

TEST(FixedPoint, TurnsPerRadian) {
  // 1 / (2 pi) = 28BE60DB 9391054A 7F09D5F4 ... of 2^32
  EXPECT_EQ(bits_of(numerics::inverse_two_pi<2>(0)), 0x28BE60DB9391054Au);
  EXPECT_EQ(bits_of(numerics::inverse_two_pi<2>(1)), 0x517CC1B727220A94u);
  EXPECT_EQ(bits_of(numerics::inverse_two_pi<2>(32)), 0x9391054A7F09D5F4u);
  EXPECT_EQ(bits_of(numerics::inverse_two_pi<2>(-4)), 0x028BE60DB9391054u);
  EXPECT_EQ(bits_of(numerics::inverse_two_pi<2>(-36)), 0x00000000028BE60Du);
  EXPECT_EQ(bits_of(numerics::inverse_two_pi<2>(-64)), 0u);
  EXPECT_EQ(bits_of(numerics::constant_of<2>(numerics::quarter_pi_table)), 0xC90FDAA22168C234u);
}

TEST(FixedPoint, RoundsToOddBinary64) {
  namespace r = numerics::rotary;
  const auto bits = [](std::uint64_t x, int exponent) {
    return r::binary64_to_odd(fraction_of(x), exponent);
  };
  EXPECT_EQ(bits(0, 0), 0u);
  EXPECT_EQ(bits(0x8000000000000000, 0), 0x3FE0000000000000u);  // 1/2
  EXPECT_EQ(bits(0x8000000000000400, 0), 0x3FE0000000000001u);  // between two numbers
  EXPECT_EQ(bits(0x8000000000000800, 0), 0x3FE0000000000001u);
  EXPECT_EQ(bits(0x8000000000000801, 0), 0x3FE0000000000001u);
  EXPECT_EQ(bits(0xFFFFFFFFFFFFFFFF, 0), 0x3FEFFFFFFFFFFFFFu);
  EXPECT_EQ(bits(1, 0), 0x3BF0000000000000u);                   // 2^-64
  EXPECT_EQ(bits(0x0000000180000000, 0), 0x3DF8000000000000u);  // 1.5 * 2^-32
  EXPECT_EQ(bits(1, 958), 0x0010000000000000u);                 // 2^-1022
  EXPECT_EQ(bits(1, 959), 1u);
  numerics::fraction<4> x = {{0, 0x10000000, 0, 1}};  // 2^-36 + 2^-128
  EXPECT_EQ(r::binary64_to_odd(x, 0), 0x3DB0000000000001u);
  x.word[3] = 0;
  EXPECT_EQ(r::binary64_to_odd(x, 0), 0x3DB0000000000000u);
  x.word[2] = 0x80000000;  // 2^-36 + 2^-65
  EXPECT_EQ(r::binary64_to_odd(x, 0), 0x3DB0000000800000u);
}

/// A sum that changes with every word.
template <std::size_t N>
std::uint64_t sum_of(const std::uint32_t (&words)[N]) {
  std::uint64_t sum = 0;
  for (const std::uint32_t word : words) sum = sum * 0x9E3779B97F4A7C15u + word;
  return sum;
}

TEST(FixedPoint, ConstantsAreThoseThatMpfrJudged) {  // by exhaustive.rotary
  EXPECT_EQ(sum_of(numerics::inverse_two_pi_table), 0x2749915CBBF8EB39u);
  EXPECT_EQ(sum_of(numerics::quarter_pi_table), 0x771E0C6502D9B2D5u);
  EXPECT_EQ(sum_of(numerics::ln_2_table), 0x8A0FA49FCE56E3B2u);
  EXPECT_EQ(sum_of(numerics::log2_e_table), 0xC371BCDFF2303C8Cu);
}

}  // namespace
}  // namespace samebits
