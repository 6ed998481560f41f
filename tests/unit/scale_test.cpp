// Scales of tiles: the formulas against the oracle's, and every edge by hand.
#include "numerics/quantize/scale.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>

#include "numerics/quantize/tile.hpp"
#include "oracle/scale.hpp"
#include "support/effort.hpp"

namespace samebits::numerics {
namespace {

constexpr std::uint32_t inf = binary32::inf;
constexpr std::uint32_t nan = binary32::nan;

constexpr tile_amax amax_of(std::uint32_t bits) { return static_cast<tile_amax>(bits); }

constexpr tile_scale scale(scale_rule rule, std::uint32_t a, format_id to = format_id::e4m3,
                           nonfinite policy = nonfinite::te) {
  return scale_of(spec_of(to), {rule, policy, 0, inf, binary32::max_finite}, amax_of(a));
}
constexpr bool is(const tile_scale& s, std::uint32_t dequantization_scale, std::uint32_t factor) {
  return s.dequantization_scale == dequantization_scale && s.factor == factor;
}

TEST(Scale, IsWhatTheOracleGives) {
  constexpr bool whole = support::effort_divisor == 1;  // still in strides, which are primes
  constexpr std::uint32_t stride = whole ? 1009 : 16127, subnormal_stride = whole ? 97 : 1549;
  for (const format_id to : {format_id::e4m3, format_id::e5m2}) {
    const oracle::format& exact = oracle::format_named(name(to));
    for (int m = 0; m < one_level_scale_rules; ++m) {
      const auto rule = static_cast<scale_rule>(m);
      for (std::uint32_t a = 1; a < inf; a += a < 0x800000u ? subnormal_stride : stride) {
        const tile_scale got = scale(rule, a, to);
        const oracle::tile_scale expected = oracle::scale_exact(rule, exact, a);
        ASSERT_TRUE(is(got, expected.s, expected.factor))
            << name(to) << " " << name(rule) << " amax " << std::hex << a << ": "
            << got.dequantization_scale << ", " << got.factor << " not " << expected.s << ", "
            << expected.factor;
      }
    }
  }
}

TEST(Scale, PowersOfTwoDoNotDependOnTheFormula) {
  // facts that make one power-of-two path equal to the others': 1 / floor_pow2(M / a), where that
  // is normal, is ceil_pow2(a / M).
  for (std::uint32_t a = 0x05000000u; a < 0x7F800000u; a += 65'537) {
    const auto s = scale(scale_rule::pow2, a).dequantization_scale;
    const auto floor = scale(scale_rule::te, a).factor & 0xFF800000u;
    ASSERT_EQ(s, binary32::divide(binary32::one, floor)) << std::hex << a;
  }
}

// --- Edges ---------------------------------------------------------------------------------------

TEST(Scale, ZeroTileHasScaleOne) {
  for (int m = 0; m < one_level_scale_rules; ++m) {
    EXPECT_TRUE(is(scale(static_cast<scale_rule>(m), 0), binary32::one, binary32::one));
  }
}

// The quotient 448 / 2^-149 overflows: FLT_MAX, whose reciprocal is subnormal and kept.
static_assert(is(scale(scale_rule::te, 1), 0x00200000u, 0x7F7FFFFFu));
// All others stop at 2^-126.
static_assert(is(scale(scale_rule::div, 1), 0x00800000u, 0x00800000u));
static_assert(is(scale(scale_rule::rcp, 1), 0x00800000u, 0x7E800000u));
static_assert(is(scale(scale_rule::pow2, 1), 0x00800000u, 0x7E800000u));
static_assert(is(scale(scale_rule::dg_cuda, 1), 0x00800000u, 0x7E800000u));
static_assert(is(scale(scale_rule::dg_tile, 1), 0x00800000u, 0x7E800000u));
static_assert(is(scale(scale_rule::sgl_v2, 1), 0x00800000u, 0x7E800000u));
// FLT_MAX cut down to 2^127, of which the reciprocal is subnormal.
static_assert(is(scale(scale_rule::te_pow2, 1), 0x00400000u, 0x7F000000u));
// 448 = 1.75 * 2^8: amax 448 is scale 1 everywhere, one bit more is 2 for pow2.
static_assert(is(scale(scale_rule::te, 0x43E00000u), binary32::one, binary32::one));
static_assert(is(scale(scale_rule::pow2, 0x43E00000u), binary32::one, binary32::one));
static_assert(is(scale(scale_rule::pow2, 0x43E00001u), 0x40000000u, 0x3F000000u));
static_assert(is(scale(scale_rule::te_pow2, 0x43E00000u), binary32::one, binary32::one));
static_assert(is(scale(scale_rule::te_pow2, 0x43E00001u), 0x40000000u, 0x3F000000u));
// 448 * RN(1/448) = 1 - 2^-24 + ... rounds to 1.
static_assert(is(scale(scale_rule::dg_cuda, 0x43E00000u), binary32::one, binary32::one));
static_assert(is(scale(scale_rule::pow2, 0x47600000u, format_id::e5m2), binary32::one,
                 binary32::one));
// 448 * 2^-127 is scale 2^-127 for mx_rceil, and so is what the quotient rounds to it.
static_assert(is(scale(scale_rule::mx_rceil, 0x04600000u), 0x00400000u, 0x7F000000u));
static_assert(is(scale(scale_rule::mx_rceil, 0x04600001u), 0x00400000u, 0x7F000000u));
static_assert(is(scale(scale_rule::mx_rceil, 0x04600002u), 0x00800000u, 0x7E800000u));
static_assert(is(scale(scale_rule::mx_rceil, 0x07E00000u, format_id::e5m2), 0x00400000u,
                 0x7F000000u));

TEST(Scale, PolicyTe) {
  for (int m = 0; m < one_level_scale_rules; ++m) {
    const auto rule = static_cast<scale_rule>(m);
    EXPECT_TRUE(is(scale(rule, inf), binary32::one, binary32::one));
    // Neither bound moves what the policy has decided.
    const scale_settings bounded = {rule, nonfinite::te, 0x41000000u, 0x42000000u,
                                    binary32::max_finite};
    const format_spec to = spec_of(format_id::e4m3);
    EXPECT_TRUE(is(scale_of(to, bounded, amax_of(inf)), binary32::one, binary32::one));
    EXPECT_TRUE(is(scale_of(to, bounded, no_amax), binary32::one, binary32::one));
  }
}

TEST(Scale, PolicyPropagateRunsTheFormulas) {
  const auto of = [](scale_rule rule, std::uint32_t a) {
    return scale(rule, a, format_id::e4m3, nonfinite::propagate);
  };
  EXPECT_TRUE(is(of(scale_rule::te, inf), inf, 0));
  EXPECT_TRUE(is(of(scale_rule::div, inf), inf, inf));
  EXPECT_TRUE(is(of(scale_rule::rcp, inf), inf, 0));
  EXPECT_TRUE(is(of(scale_rule::pow2, inf), 0x7F000000u, 0x00400000u));
  for (const scale_rule rule :
       {scale_rule::dg_cuda, scale_rule::dg_tile, scale_rule::sgl_v2, scale_rule::te_pow2}) {
    EXPECT_TRUE(is(of(rule, inf), inf, 0)) << name(rule);
    EXPECT_TRUE(is(of(rule, nan), nan, nan)) << name(rule);
  }
  EXPECT_TRUE(is(of(scale_rule::te, nan), nan, nan));
  EXPECT_TRUE(is(of(scale_rule::div, nan), nan, nan));
  EXPECT_TRUE(is(of(scale_rule::rcp, nan), nan, nan));
  EXPECT_TRUE(is(of(scale_rule::pow2, nan), 0x7F000000u, 0x00400000u));
}

TEST(Scale, MxScalesOfInfAndNaN) {
  for (const scale_rule rule :
       {scale_rule::mx_floor, scale_rule::mx_ceil, scale_rule::mx_even, scale_rule::mx_rceil}) {
    const auto of = [rule](nonfinite policy, std::uint32_t a, std::uint32_t upper = inf) {
      const scale_settings settings = {rule, policy, 0, upper};
      return scale_of(spec_of(format_id::e4m3), settings, amax_of(a));
    };
    EXPECT_TRUE(is(of(nonfinite::propagate, inf), nan, nan)) << name(rule);
    EXPECT_TRUE(is(of(nonfinite::propagate, nan), nan, nan)) << name(rule);
    EXPECT_TRUE(is(of(nonfinite::skip_nan, inf), 0x7F000000u, 0x00400000u)) << name(rule);
    EXPECT_TRUE(is(of(nonfinite::te, inf), binary32::one, binary32::one)) << name(rule);
    // Inf obeys the bound, which is finite.
    EXPECT_EQ(of(nonfinite::propagate, inf, 0x43800000u).dequantization_scale, binary32::one)
        << name(rule);
    EXPECT_EQ(of(nonfinite::skip_nan, inf, 0x43800000u).dequantization_scale, binary32::one)
        << name(rule);
  }
}

TEST(Scale, ZeroTilesInE8m0) {
  scale_settings settings = {scale_rule::mx_floor, nonfinite::te};
  settings.scale_of_zeros = 0x00400000u;
  const format_spec to = spec_of(format_id::e4m3);
  EXPECT_TRUE(is(scale_of(to, settings, 0), 0x00400000u, binary32::one));
  EXPECT_TRUE(is(scale_of(to, settings, no_amax), binary32::one, binary32::one));
  EXPECT_EQ(e8m0_of(0x00400000u), 0x00u);
  EXPECT_EQ(e8m0_of(binary32::one), 0x7Fu);
  EXPECT_EQ(e8m0_of(0x7F000000u), 0xFEu);
  EXPECT_EQ(e8m0_of(nan), 0xFFu);
  EXPECT_EQ(e8m0_of(inf), 0xFFu);
}

TEST(Scale, SkipNanRunsTheFormulasOnInf) {
  const auto of = [](scale_rule rule, tile_amax a) {
    const scale_settings settings = {rule, nonfinite::skip_nan, 0x43E00000u};
    return scale_of(spec_of(format_id::e4m3), settings, a);
  };
  EXPECT_TRUE(is(of(scale_rule::div, amax_of(inf)), inf, inf));
  EXPECT_TRUE(is(of(scale_rule::te, amax_of(inf)), inf, 0));
  EXPECT_TRUE(is(of(scale_rule::pow2, amax_of(inf)), 0x7F000000u, 0x00400000u));
  EXPECT_TRUE(is(of(scale_rule::div, no_amax), binary32::one, binary32::one));
}

TEST(Scale, AnInfiniteFactorBecomesWhatTheRuleSays) {
  constexpr std::uint32_t bf16_max = 0x7F7F0000u;
  const auto of = [](scale_rule rule, std::uint32_t a) {
    return scale_of(spec_of(format_id::e4m3), {rule, nonfinite::te, 0, inf, bf16_max}, amax_of(a));
  };
  EXPECT_TRUE(is(of(scale_rule::te, 1), 0x00202020u, bf16_max));
  EXPECT_TRUE(is(of(scale_rule::te_pow2, 1), 0x00400000u, 0x7F000000u));
  // Just no overflow: S of its own, beyond bf16's largest.
  EXPECT_EQ(of(scale_rule::te, std::bit_cast<std::uint32_t>(0x1.c00002p-120f)).factor, 0x7F7FFFFFu);
  for (const scale_rule rule : {scale_rule::div, scale_rule::rcp, scale_rule::dg_tile}) {
    EXPECT_EQ(of(rule, 1).dequantization_scale, 0x00800000u);
  }
}

TEST(Scale, BoundsAreAppliedInOrder) {
  const format_spec to = spec_of(format_id::e4m3);
  const auto of = [&](std::uint32_t eps, std::uint32_t upper, std::uint32_t a,
                      nonfinite policy = nonfinite::te) {
    return scale_of(to, {scale_rule::pow2, policy, eps, upper, binary32::max_finite}, amax_of(a))
        .dequantization_scale;
  };
  EXPECT_EQ(of(0x43E00000u, inf, 0), binary32::one);  // eps = 448 before the zero test
  EXPECT_EQ(of(0x44600000u, inf, 1), 0x40000000u);
  EXPECT_EQ(of(0, 0x43E00000u, 0x7F000000u), binary32::one);
  EXPECT_EQ(of(0x44600000u, 0x43E00000u, 1), binary32::one);  // the upper bound comes last
  EXPECT_EQ(of(0, 0x43E00000u, inf, nonfinite::propagate), binary32::one);
  EXPECT_EQ(
      scale_of(to, {scale_rule::te, nonfinite::propagate, 0, 0x43E00000u, binary32::max_finite},
               amax_of(nan))
          .dequantization_scale,
      nan);
}

TEST(Scale, CountedMagnitudes) {
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (int p = 0; p < enum_count<nonfinite>; ++p) {
      const auto policy = static_cast<nonfinite>(p);
      EXPECT_EQ(amax_contribution(policy, sign), 0);
      EXPECT_EQ(amax_contribution(policy, sign | 0x7F7FFFFFu), 0x7F7FFFFF);
    }
    for (const std::uint32_t payload : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu}) {
      EXPECT_EQ(amax_contribution(nonfinite::te, sign | payload), no_amax);
      EXPECT_EQ(amax_contribution(nonfinite::skip_nonfinite, sign | payload), no_amax);
      EXPECT_EQ(amax_contribution(nonfinite::propagate, sign | payload), amax_of(nan));
    }
    EXPECT_EQ(amax_contribution(nonfinite::skip_nan, sign | 0x7F800001u), no_amax);
    EXPECT_EQ(amax_contribution(nonfinite::skip_nan, sign | inf), amax_of(inf));
    EXPECT_EQ(amax_contribution(nonfinite::te, sign | inf), amax_of(inf));
    EXPECT_EQ(amax_contribution(nonfinite::skip_nonfinite, sign | inf), no_amax);
    EXPECT_EQ(amax_contribution(nonfinite::propagate, sign | inf), amax_of(inf));
  }
  EXPECT_EQ(combined(no_amax, 0), 0);
  EXPECT_EQ(combined(amax_of(nan), amax_of(inf)), amax_of(nan));
}

TEST(Scale, ScaledElements) {
  const tile_scale three = {0x40400000u, 0x40400000u};
  EXPECT_EQ(scaled(scale_rule::div, three, binary32::one), 0x3EAAAAABu);
  EXPECT_EQ(scaled(scale_rule::te, three, binary32::one), 0x40400000u);
  EXPECT_EQ(scaled(scale_rule::te, three, 0x80000000u), 0x80000000u);
  EXPECT_EQ(scaled(scale_rule::te, three, 0xFFC00001u), nan);
  EXPECT_EQ(scaled(scale_rule::rcp, {inf, 0}, inf), nan);
  EXPECT_EQ(scaled(scale_rule::div, {inf, inf}, 0xC0400000u), 0x80000000u);
}

}  // namespace
}  // namespace samebits::numerics
