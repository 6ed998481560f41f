// Short cuts of a quantization's statistics against the definition: squares, their sums, and what
// cannot become zero.
#include "numerics/quantize/counted.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/scale.hpp"

namespace samebits::numerics {
namespace {

float value_of(format_id from, std::uint32_t code) {
  return std::bit_cast<float>(decode<std::uint32_t>(spec_of(from), code));
}

double widened(float square) {
  return std::bit_cast<double>(wide_square(std::bit_cast<std::uint32_t>(square)));
}

TEST(Counted, SquaresAreExactInTheirRange) {
  for (const format_id from : {format_id::bf16, format_id::fp16}) {
    const magnitude_range range = exact_squares(from);
    for (std::uint32_t code = 0; code < range.most; ++code) {
      if (code != 0 && code < range.least) continue;
      const float x = value_of(from, code);
      const double exact = static_cast<double>(x) * static_cast<double>(x);
      ASSERT_EQ(static_cast<double>(x * x), exact) << code;
      ASSERT_EQ(widened(x * x) * 0x1p896, exact) << code;
      if (from == format_id::bf16) {
        ASSERT_EQ(wide_square(std::bit_cast<std::uint32_t>(x * x)) & 0xFFFFFFFFu, 0u) << code;
      }
    }
    // Neither end can be moved.
    if (from == format_id::bf16) {
      const float below = value_of(from, range.least - 1), above = value_of(from, range.most);
      EXPECT_NE(wide_square(std::bit_cast<std::uint32_t>(below * below)) & 0xFFFFFFFFu, 0u);
      EXPECT_EQ(above * above, std::bit_cast<float>(binary32::inf));
    }
  }
}

TEST(Counted, WideSquareIsTheNumber) {
  for (std::uint64_t v = 0; v < binary32::inf; v += 1021) {
    const auto bits = static_cast<std::uint32_t>(v);
    const float number = std::bit_cast<float>(bits);
    ASSERT_EQ(widened(number) * 0x1p896, static_cast<double>(number)) << v;
  }
  static_assert(squares_exponent == 896);
}

TEST(Counted, SumsOfWideSquaresRoundAlike) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200000; ++round) {
    const int spread = 1 + static_cast<int>(random() % 120);  // exponents that occur
    const std::uint32_t lowest =
        static_cast<std::uint32_t>(random() % static_cast<std::uint64_t>(250 - spread)) << 23;
    double wide[8], plain[8];
    for (int i = 0; i < 8; ++i) {
      const auto span = static_cast<std::uint32_t>(spread) << 23;
      const float v = std::bit_cast<float>(lowest + static_cast<std::uint32_t>(random()) % span);
      wide[i] = widened(v);
      plain[i] = static_cast<double>(v);
    }
    for (int n = 8; n > 1; n /= 2) {
      for (int i = 0; i < n / 2; ++i) {
        wide[i] = wide[2 * i] + wide[2 * i + 1];
        plain[i] = plain[2 * i] + plain[2 * i + 1];
      }
    }
    ASSERT_EQ(wide[0] * 0x1p896, plain[0]) << "exponents from " << (lowest >> 23);
  }
}

/// Sums of 32 squares from one end of the reach to the other, in two orders; and that it could not
/// be longer.
TEST(Counted, SumsWithinReachAreExact) {
  std::mt19937_64 random(2);
  for (const format_id from : {format_id::bf16, format_id::fp16}) {
    const std::uint32_t reach = exact_sum_reach(from), most = exact_squares(from).most;
    for (int round = 0; round < 100000; ++round) {
      const std::uint32_t least = static_cast<std::uint32_t>(random() % (most - reach - 1)) + 1;
      double squares[32], in_order = 0;
      for (int i = 0; i < 32; ++i) {
        // Both ends, zero, and between.
        const std::uint64_t kind = random() % 8;
        const auto within = static_cast<std::uint32_t>(random() % (reach + 1));
        const std::uint32_t code = kind == 0   ? 0
                                   : kind == 1 ? least
                                   : kind < 4  ? least + reach
                                               : least + within;
        const auto x = static_cast<double>(value_of(from, code));
        squares[i] = x * x;
        in_order += squares[i];
      }
      for (int n = 32; n > 1; n /= 2) {
        for (int i = 0; i < n / 2; ++i) squares[i] = squares[2 * i] + squares[2 * i + 1];
      }
      ASSERT_EQ(in_order, squares[0]) << "from " << least;
    }
    // The least square beside 31 of the largest: kept, and lost one binade further.
    const int p = spec_of(from).mantissa_bits + 1;
    const auto binades = static_cast<int>(reach >> (p - 1));
    for (const int apart : {binades, binades + 1}) {
      const double large = std::ldexp(std::ldexp(1.0, p) - 1, apart), sum = 31 * large * large;
      EXPECT_EQ(sum + 1.0 - sum, apart == binades ? 1.0 : 0.0);
    }
  }
}

/// Every amax of 16-bit formats under every maths, with and without bounds.
TEST(Counted, ScalesFollowFromThoseOfOneBinade) {
  std::uint64_t plain = 0;
  for (int m = 0; m < scale_math_count; ++m) {
    const auto math = static_cast<scale_math>(m);
    if (math == scale_math::div) continue;
    for (const format_id from : {format_id::bf16, format_id::fp16}) {
      const auto inf = static_cast<std::uint32_t>(inf_code(spec_of(from)));
      for (const format_id to : {format_id::e4m3, format_id::e5m2}) {
        for (const std::uint32_t eps : {0u, 0x0DA24260u, 0x3A83126Fu}) {
          for (const nonfinite policy : {nonfinite::te, nonfinite::propagate}) {
            const scale_rule rule{.math = math, .on_nonfinite = policy, .eps = eps};
            const scale_rule unbounded{.math = math, .on_nonfinite = policy};
            const magnitude_range amaxes = plain_amaxes(rule), codes = codes_within(from, amaxes);
            for (std::uint32_t code = 0; code < inf; ++code) {
              const auto amax = decode<std::uint32_t>(spec_of(from), code);
              const bool within = amax >= amaxes.least && amax < amaxes.most;
              ASSERT_EQ(code >= codes.least && code < codes.most, within) << code;
              if (!within) continue;
              const std::uint32_t first = 0x3F800000u | (amax & 0x007FFFFFu);
              const tile_scale s =
                  scale_times(scale_of(spec_of(to), unbounded, static_cast<tile_amax>(first)),
                              (amax & 0x7F800000u) - 0x3F800000u);
              const tile_scale expected = scale_of(spec_of(to), rule, static_cast<tile_amax>(amax));
              ASSERT_EQ(s.stored, expected.stored) << m << " " << std::hex << amax;
              ASSERT_EQ(s.factor, expected.factor) << m << " " << std::hex << amax;
              ++plain;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(plain, 4000000u);
  // A bound from above leaves none that it could touch.
  const magnitude_range none = plain_amaxes({.upper_bound = 0x42C80000u});
  EXPECT_GE(none.least, none.most);
}

/// Whether magnitude `code` becomes zero in a tile of that scale.
bool vanishes(format_id from, format_id to, scale_math math, const tile_scale& s,
              std::uint32_t code) {
  cast_rule rule{};
  rule.on_overflow = overflow::saturate;
  const std::uint32_t y =
      scaled<binary32::integers>(math, s, decode<std::uint32_t>(spec_of(from), code));
  return encode<std::uint32_t>(spec_of(to), rule, y, 0).code == 0;
}

/// Every magnitude in each half beside a few in the other.
TEST(Counted, ComparesHalvesApart) {
  constexpr std::uint32_t few[] = {0, 1, 0x3F80, 0x7FFE, 0x7FFF};
  for (const std::uint32_t bound : few) {
    for (const std::uint32_t other : few) {
      for (std::uint32_t m = 0; m < 0x8000; ++m) {
        const bool above = m > bound, both = above && other > bound;
        ASSERT_EQ(both_above(m << 16 | other, bound * 0x10001u), both) << m << " " << other;
        ASSERT_EQ(both_above(other << 16 | m, bound * 0x10001u), both) << m << " " << other;
      }
    }
  }
}

// 2 d + 2 p + 5 bits for d binades of p bits: 53 and 53. One binade more would need two bits more.
static_assert(exact_sum_reach(format_id::bf16) == 16u << 7);
static_assert(exact_sum_reach(format_id::fp16) == 13u << 10);
static_assert(exact_squares(format_id::bf16).least == 0x1E80);  // 2^-66
static_assert(exact_squares(format_id::bf16).most == 0x5F80);   // 2^64
static_assert(exact_squares(format_id::fp16).least == 1);
static_assert(exact_squares(format_id::fp16).most == 0x7C00);

/// Whether the code below is at most what the definition of largest_vanishing() grants: s * h and
/// 2^-5 of it, or a little above the least normal number.
bool is_close(format_id from, const format_spec& to, std::uint32_t s, std::uint32_t largest) {
  if (largest == 0 || largest > inf_code(spec_of(from))) return false;
  const auto below = std::bit_cast<float>(decode<std::uint32_t>(spec_of(from), largest - 1));
  const double half = std::ldexp(1.0, -(to.bias + to.mantissa_bits));
  const double exact = std::fmax(std::bit_cast<float>(s) * half, std::ldexp(1.0, -126));
  return below <= exact * (1 + 0x1p-5);
}

TEST(Counted, NothingAboveTheLargestVanishingVanishes) {
  std::uint64_t vanishing = 0;
  for (int m = 0; m < scale_math_count; ++m) {
    const auto math = static_cast<scale_math>(m);
    if (math == scale_math::div || !bounds_elements(math)) continue;
    for (const format_id from : {format_id::bf16, format_id::fp16, format_id::fp32}) {
      const int bits = spec_of(from).storage_bits;
      const auto inf = static_cast<std::uint32_t>(inf_code(spec_of(from)));
      const std::uint32_t step = bits == 16 ? 3 : 300007;
      for (const format_id to : {format_id::e4m3, format_id::e5m2}) {
        for (std::uint32_t most = 1; most < inf; most += step) {
          const scale_rule rule{.math = math};
          const auto amax = static_cast<tile_amax>(decode<std::uint32_t>(spec_of(from), most));
          const tile_scale s = scale_of(spec_of(to), rule, amax);
          const std::uint32_t small = largest_vanishing(from, spec_of(to), s.stored);
          ASSERT_TRUE(is_close(from, spec_of(to), s.stored, small))
              << name(from) << " to " << name(to) << ", maths " << m << ", amax " << most;
          if (small + 1 >= inf) continue;
          ASSERT_FALSE(vanishes(from, to, math, s, small + 1))
              << name(from) << " to " << name(to) << ", maths " << m << ", amax " << most;
          vanishing += vanishes(from, to, math, s, small - small / 32);
        }
      }
    }
  }
  EXPECT_GT(vanishing, 100000u);  // it is not far off
}

}  // namespace
}  // namespace samebits::numerics
