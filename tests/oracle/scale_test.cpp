// Tests of the oracle's scale rules and sum by hand. exhaustive.scales_of_* compare scales from rationals with
// those from the machine's division.
#include "oracle/scale.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "oracle/sum_tree.hpp"

namespace samebits::oracle {
namespace {

const format& e4m3 = format_named("e4m3");
const format& e5m2 = format_named("e5m2");

float value(std::uint32_t code) { return std::bit_cast<float>(code); }
std::uint32_t code(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t code64(double x) { return std::bit_cast<std::uint64_t>(x); }

// u = 2^-53. {1,u,u}: (1+u) ties to 1, then 1+u to 1. {u,u,1}: 2u + 1 exactly.
// {1,u,u,u,u}: level 1: 1, 2u, u; level 2: 1+2u, u; root 1+3u, the tie of 1+2u (odd) and 1+4u.
TEST(OracleSumTree, ShapeIsFixed) {
  const double u = 0x1p-53;
  const auto sum = [](const std::vector<double>& x) {
    std::vector<std::uint64_t> inputs;
    for (const double input : x) inputs.push_back(code64(input));
    return std::bit_cast<double>(sum_tree(inputs));
  };
  EXPECT_EQ(sum_tree({}), 0u);
  EXPECT_EQ(sum_tree({code64(-0.0)}), code64(-0.0));
  EXPECT_EQ(sum({1, u, u}), 1);
  EXPECT_EQ(sum({u, u, 1}), 1 + 2 * u);
  EXPECT_EQ(sum({1, u, u, u, u}), 1 + 4 * u);
}

TEST(OracleScale, TinyAmax) {
  // 0x1.cp-120 is the largest whose S is Inf.
  for (const std::uint32_t a : {0x00000001u, 0x007FFFFFu, code(0x1.cp-120f)}) {
    // 448/a >= 2^128 is Inf -> FLT_MAX = 2^128 (1 - 2^-24); 1/S = 2^-128 (1 + 2^-24 + ...), where
    // the grid is 2^-149: 2^-128.
    EXPECT_EQ(scale_of_amax(scale_rule::te, e4m3, a), (tile_scale{0x00200000, 0x7F7FFFFF}));
    // a/448 <= 2^-128 is raised to 2^-126.
    EXPECT_EQ(scale_of_amax(scale_rule::div, e4m3, a), (tile_scale{0x00800000, 0x00800000}));
    EXPECT_EQ(scale_of_amax(scale_rule::rcp, e4m3, a), (tile_scale{0x00800000, 0x7E800000}));
    EXPECT_EQ(scale_of_amax(scale_rule::pow2, e4m3, a), (tile_scale{0x00800000, 0x7E800000}));
  }
  // Twice that edge: S = 2^127, whose reciprocal 2^-127 is subnormal and kept.
  EXPECT_EQ(scale_of_amax(scale_rule::te, e4m3, code(0x1.cp-119f)),
            (tile_scale{0x00400000, 0x7F000000}));
}

// a = 0x1.cp-119 gives M / a = 2^127 and a / M = 2^-127; a = 0x1.cp-118 the first that nothing
// moves.
TEST(OracleScale, TinyAmaxOfTheFurtherRules) {
  const tile_scale minimum{0x00800000, 0x7E800000};
  for (const scale_rule rule : {scale_rule::dg_cuda, scale_rule::dg_tile, scale_rule::sgl_v2}) {
    for (const std::uint32_t a : {0x00000001u, code(0x1.cp-119f), code(0x1.cp-118f)}) {
      EXPECT_EQ(scale_of_amax(rule, e4m3, a), minimum);
    }
  }
  EXPECT_EQ(scale_of_amax(scale_rule::te_pow2, e4m3, 1), (tile_scale{0x00400000, 0x7F000000}));
  EXPECT_EQ(scale_of_amax(scale_rule::te_pow2, e4m3, code(0x1.cp-118f)), minimum);
  // bf16's largest is 2^128 - 2^120, whose reciprocal 2^-128 (1 + 2^-8) is 0x00202020.2; fp16's
  // 65504.
  EXPECT_EQ(scale_of_amax(scale_rule::te, e4m3, 1, 0x7F7F0000),
            (tile_scale{0x00202020, 0x7F7F0000}));
  EXPECT_EQ(scale_of_amax(scale_rule::te_pow2, e4m3, 1, 0x7F7F0000),
            (tile_scale{0x00400000, 0x7F000000}));
  EXPECT_EQ(scale_of_amax(scale_rule::te_pow2, e4m3, 1, 0x477FE000),
            (tile_scale{0x38000000, 0x47000000}));
}

// a = f * 2^8 for e4m3: scale 1, 2^8 / 1 and so on, each at the edge of a scale rule.
TEST(OracleScale, MxModesAtTheirEdges) {
  const auto s = [](scale_rule rule, float a, const format& to = e4m3) {
    return value(scale_of_amax(rule, to, code(a)).s);
  };
  const float below512 = value(code(512) - 1);
  EXPECT_EQ(s(scale_rule::mx_floor, 256), 1);
  EXPECT_EQ(s(scale_rule::mx_floor, below512), 1);
  EXPECT_EQ(s(scale_rule::mx_floor, 512), 2);
  EXPECT_EQ(s(scale_rule::mx_ceil, 256), 1);
  EXPECT_EQ(s(scale_rule::mx_ceil, value(code(256) + 1)), 2);
  EXPECT_EQ(s(scale_rule::mx_even, value(code(496) - 1)), 1);  // 496: between 480 and 512
  EXPECT_EQ(s(scale_rule::mx_even, 496), 2);
  EXPECT_EQ(s(scale_rule::mx_rceil, 448), 1);
  EXPECT_EQ(s(scale_rule::mx_rceil, value(code(448) + 1)), 2);
  // e5m2: emax 15, one mantissa bit less: 61440 lies between 57344 and 65536.
  EXPECT_EQ(s(scale_rule::mx_floor, 65535, e5m2), 1);
  EXPECT_EQ(s(scale_rule::mx_even, value(code(61440) - 1), e5m2), 1);
  EXPECT_EQ(s(scale_rule::mx_even, 61440, e5m2), 2);
  EXPECT_EQ(s(scale_rule::mx_rceil, 57344, e5m2), 1);
  // The ends of e8m0.
  const tile_scale minimum{0x00400000, 0x7F000000};
  for (const scale_rule rule :
       {scale_rule::mx_floor, scale_rule::mx_ceil, scale_rule::mx_even, scale_rule::mx_rceil}) {
    EXPECT_EQ(scale_of_amax(rule, e4m3, 1), minimum);
    EXPECT_EQ(scale_of_amax(rule, e4m3, 0x7F800000), (tile_scale{0x7F000000, 0x00400000}));
  }
  EXPECT_EQ(s(scale_rule::mx_floor, value(0x7F7FFFFF)), 0x1p119f);
  EXPECT_EQ(s(scale_rule::mx_even, value(0x7F7FFFFF)), 0x1p120f);
  // t = 2^-127 and the next one.
  EXPECT_EQ(scale_of_amax(scale_rule::mx_rceil, e4m3, code(0x1.cp-119f)), minimum);
  EXPECT_EQ(s(scale_rule::mx_rceil, 0x1.c00002p-119f * 1.0000004f), 0x1p-126f);
}

TEST(OracleScale, MxBytes) {
  const auto byte = [](scale_rule rule, nonfinite policy, std::vector<std::uint32_t> x) {
    return e8m0_of_tile({rule, policy, 0, {}}, e4m3, x);
  };
  constexpr std::uint32_t inf = 0x7F800000, nan = 0xFFC00001;
  const std::uint32_t one = code(1);
  for (const scale_rule rule :
       {scale_rule::mx_floor, scale_rule::mx_ceil, scale_rule::mx_even, scale_rule::mx_rceil}) {
    for (const nonfinite policy :
         {nonfinite::te, nonfinite::skip_nonfinite, nonfinite::propagate, nonfinite::skip_nan}) {
      EXPECT_EQ(byte(rule, policy, {0, 0x80000000}), 0x00);
      EXPECT_EQ(byte(rule, policy, {one}), 119);
      EXPECT_EQ(byte(rule, policy, {one, nan}), policy == nonfinite::propagate ? 0xFF : 119);
      EXPECT_EQ(byte(rule, policy, {nan}), policy == nonfinite::propagate ? 0xFF : 0x7F);
    }
    EXPECT_EQ(byte(rule, nonfinite::te, {one, inf}), 0x7F);
    EXPECT_EQ(byte(rule, nonfinite::skip_nonfinite, {one, inf}), 119);
    EXPECT_EQ(byte(rule, nonfinite::skip_nan, {one, inf, nan}), 0xFE);
    EXPECT_EQ(byte(rule, nonfinite::propagate, {one, inf}), 0xFF);
  }
  EXPECT_EQ(byte(scale_rule::pow2, nonfinite::te, {0}), 0x00);
  EXPECT_EQ(byte(scale_rule::pow2, nonfinite::te, {1}), 0x01);
  EXPECT_EQ(byte(scale_rule::te_pow2, nonfinite::te, {1}), 0x00);
}

// 1/448 = 2^-9 * 8/7 is no binary32 number, so products with it and quotients round apart; what is
// the same step has the same bits in every scale rule.
TEST(OracleScale, ReciprocalAndQuotientAreDifferentRules) {
  int products = 0;
  int inverses = 0;
  for (std::uint32_t a = 0x3F800000; a < 0x3F800000 + 1000; ++a) {
    const tile_scale cuda = scale_of_amax(scale_rule::dg_cuda, e4m3, a);
    const tile_scale cpu = scale_of_amax(scale_rule::rcp, e4m3, a);
    const tile_scale tile = scale_of_amax(scale_rule::dg_tile, e4m3, a);
    const tile_scale sgl = scale_of_amax(scale_rule::sgl_v2, e4m3, a);
    EXPECT_EQ(tile.s, cpu.s);
    EXPECT_EQ(sgl.s, cuda.s);
    EXPECT_EQ(sgl.factor, tile.factor);
    EXPECT_EQ(tile.factor, scale_of_amax(scale_rule::te, e4m3, a).factor);
    products += cuda.s != cpu.s ? 1 : 0;
    inverses += tile.factor != cpu.factor ? 1 : 0;
  }
  EXPECT_GT(products, 300);
  EXPECT_GT(inverses, 100);
}

// t = 448 * 2^k / 448 = 2^k. One code beyond: 2^k (1 + 2^-23/1.75) -> mantissa 1, next power. One
// below: 2^k (1 - 2^-23/1.75) -> 2^k (1 - 2^-24), whose next power is 2^k.
TEST(OracleScale, Pow2AtTheEdge) {
  for (int k = -110; k <= 118; ++k) {
    const auto field = static_cast<std::uint32_t>(k + 127);
    const std::uint32_t a = (field + 8) * 0x00800000u + 0x00600000u;  // 1.75 * 2^(k+8)
    const std::uint32_t power = field * 0x00800000u;
    const std::uint32_t inverse = (254 - field) * 0x00800000u;
    const tile_scale here{power, inverse};
    const tile_scale next{power + 0x00800000u, inverse - 0x00800000u};
    EXPECT_EQ(scale_of_amax(scale_rule::pow2, e4m3, a), here) << k;
    EXPECT_EQ(scale_of_amax(scale_rule::pow2, e4m3, a - 1), here) << k;
    EXPECT_EQ(scale_of_amax(scale_rule::pow2, e4m3, a + 1), next) << k;
    if (k + 15 > 127) continue;  // M = 57344 = 1.75 * 2^15
    const std::uint32_t wide = a + 7 * 0x00800000u;
    EXPECT_EQ(scale_of_amax(scale_rule::pow2, e5m2, wide), here) << k;
    EXPECT_EQ(scale_of_amax(scale_rule::pow2, e5m2, wide + 1), next) << k;
  }
  // FLT_MAX / 448 = 1.14 * 2^119.
  EXPECT_EQ(scale_of_amax(scale_rule::pow2, e4m3, 0x7F7FFFFF),
            (tile_scale{(127 + 120) * 0x00800000u, 7 * 0x00800000u}));
}

}  // namespace
}  // namespace samebits::oracle
