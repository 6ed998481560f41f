// Tests of the oracle's tile quantization: matrices worked by hand from contract §7.
#include "oracle/quantize.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace samebits::oracle {
namespace {

using bytes = std::vector<std::uint8_t>;
using words = std::vector<std::uint32_t>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr std::uint32_t negative_nan = 0xFF812345;

const format& fp32 = format_named("fp32");
const format& bf16 = format_named("bf16");
const format& fp16 = format_named("fp16");
const format& e4m3 = format_named("e4m3");
const format& e5m2 = format_named("e5m2");

std::uint32_t code(float x) { return std::bit_cast<std::uint32_t>(x); }

words codes(const std::vector<float>& x) {
  words result;
  for (const float element : x) result.push_back(code(element));
  return result;
}

quantize_rule rule_of(const scale_settings& scale, overflow on_overflow = overflow::saturate) {
  return {scale, {rounding::nearest_even, on_overflow}, {}};
}

/// One tile of one row.
quantized quantize_tile(const words& x, const quantize_rule& rule, const format& to = e4m3) {
  return quantize(fp32, to, x, {1, x.size(), 1, x.size()}, rule);
}

void expect(const quantized& got, const words& of_tiles, const bytes& of_elements,
            const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const ::testing::ScopedTrace at(file, line, "quantized");
  EXPECT_EQ(got.scales, of_tiles);
  EXPECT_EQ(got.codes, of_elements);
}

// Tile {57, 76, 1, -0}, a = 76. Grid of e4m3: spacing 32 in [256, 512), 1/2 in [4, 8).
//   te   S = 448/76 = 12362159.16 * 2^-21 -> 12362159 = BCA1AF.
//        1/S = 11384539.57 * 2^-26 -> 11384540 = ADB6DC.
//        57 S = 336 - 9 * 2^-21 -> 336 in binary32 (ulp 64 * 2^-21), tie of 320 and 352 -> even
//        320. 76 S = 448 - 12 * 2^-21 -> 448. 1 S = 5.89 -> 6.
//   div  s = 76/448 = 11384539.43 * 2^-26 -> 11384539 = ADB6DB.
//        57/s = 336 + 0.41 ulp -> 336 -> 320. 76/s = 448 + 0.55 ulp -> 448 + 2^-15 -> 448.
//   rcp  s as div. r = 1/s = 12362159.62 * 2^-21 -> 12362160 = BCA1B0.
//        57 r = 336 + 48 * 2^-21 -> 336 + 2^-15, above the tie -> 352. 76 r = 448 + 2^-15 -> 448.
//   pow2 t = 1.36 * 2^-3 -> s = 2^-2, r = 4. 228 -> 224 (spacing 16), 304 tie of 288 and
//        320 -> 320.
TEST(OracleQuantize, OrdinaryTile) {
  const words x = codes({57, 76, 1, -0.0f});
  expect(quantize_tile(x, rule_of({scale_rule::te})), {0x3E2DB6DC}, {0x7A, 0x7E, 0x4C, 0x80});
  expect(quantize_tile(x, rule_of({scale_rule::div})), {0x3E2DB6DB}, {0x7A, 0x7E, 0x4C, 0x80});
  expect(quantize_tile(x, rule_of({scale_rule::rcp})), {0x3E2DB6DB}, {0x7B, 0x7E, 0x4C, 0x80});
  expect(quantize_tile(x, rule_of({scale_rule::pow2})), {0x3E800000}, {0x76, 0x7A, 0x48, 0x80});
}

// a = 57344 * 2 = 1.75 * 2^16. s = 2 in every scale rule; y = x / 2: 57344; 3 (e5m2: 1.5 * 2); -1.
TEST(OracleQuantize, E5m2) {
  for (const scale_rule rule :
       {scale_rule::te, scale_rule::div, scale_rule::rcp, scale_rule::pow2}) {
    expect(quantize_tile(codes({114688, 6, -2}), rule_of({rule}), e5m2), {0x40000000},
           {0x7B, 0x42, 0xBC});
  }
}

// fp16 0001 = 2^-24, bf16 0001 = 2^-133. te: S = 448 * 2^24, y = 448. pow2: t = 2^-24 / 448 =
// 1.14 * 2^-33 -> s = 2^-32, y = 2^8. bf16: S = Inf -> FLT_MAX, y = 2^-5 (1 - 2^-24) -> 2^-5 =
// 16 * 2^-9, normal, exponent field 2.
TEST(OracleQuantize, NarrowInputsWidenExactly) {
  const tiling one{1, 1, 1, 1};
  const words minimum{0x0001};
  EXPECT_EQ(quantize(fp16, e4m3, minimum, one, rule_of({scale_rule::te})).codes, (bytes{0x7E}));
  const quantized pow2 = quantize(fp16, e4m3, minimum, one, rule_of({scale_rule::pow2}));
  EXPECT_EQ(pow2.codes, (bytes{0x78}));
  EXPECT_EQ(pow2.scales, (words{(127 - 32) * 0x00800000u}));
  const quantized te = quantize(bf16, e4m3, minimum, one, rule_of({scale_rule::te}));
  EXPECT_EQ(te.codes, (bytes{0x10}));
  EXPECT_EQ(te.scales, (words{0x00200000}));
}

TEST(OracleQuantize, ZeroTile) {
  for (const scale_rule rule :
       {scale_rule::te, scale_rule::div, scale_rule::rcp, scale_rule::pow2}) {
    expect(quantize_tile(codes({0.0f, -0.0f}), rule_of({rule})), {0x3F800000}, {0x00, 0x80});
  }
  // A NaN beside zeros is not counted in a; its code is 7F whatever its sign and nan_policy.
  quantize_rule keep_sign = rule_of({});
  keep_sign.cast.nan = nan_policy::preserve_sign;
  expect(quantize_tile({0x80000000, negative_nan}, keep_sign), {0x3F800000}, {0x80, 0x7F});
}

TEST(OracleQuantize, NonFiniteTe) {
  // NaN is skipped: a = 224, S = 2, s = 1/2.
  expect(quantize_tile({negative_nan, code(224)}, rule_of({})), {0x3F000000}, {0x7F, 0x7E});
  // Inf gives s = 1, in every scale rule, whatever the bound.
  for (const scale_rule rule :
       {scale_rule::te, scale_rule::div, scale_rule::rcp, scale_rule::pow2}) {
    expect(quantize_tile(codes({1, -infinity, 1000}), rule_of({rule, nonfinite::te, 0, code(100)})),
           {0x3F800000}, {0x38, 0xFE, 0x7E});
  }
  // Nothing left gives s = 1, whatever eps.
  const scale_settings eps{scale_rule::te, nonfinite::te, code(7), {}};
  EXPECT_EQ(quantize_tile({0x7F800001, negative_nan}, rule_of(eps)).scales, (words{0x3F800000}));
}

TEST(OracleQuantize, NonFiniteSkipped) {
  const scale_settings skip{scale_rule::te, nonfinite::skip_nonfinite, 0, {}};
  const words x{code(infinity), code(-infinity), 0x7FC00000, code(224)};
  expect(quantize_tile(x, rule_of(skip)), {0x3F000000}, {0x7E, 0xFE, 0x7F, 0x7E});
  const quantized finite = quantize_tile(x, rule_of(skip, overflow::saturate_finite));
  EXPECT_EQ(finite.codes, (bytes{0x7F, 0x7F, 0x7F, 0x7E}));
  // e5m2: S = 57344/224 = 256; 224 * 256 = 57344.
  expect(quantize_tile(x, rule_of(skip, overflow::ieee), e5m2), {0x3B800000},
         {0x7C, 0xFC, 0x7F, 0x7B});
  EXPECT_EQ(quantize_tile(codes({infinity}), rule_of(skip)).scales, (words{0x3F800000}));
}

TEST(OracleQuantize, NonFinitePropagated) {
  const auto rule_with = [](scale_rule rule) {
    return rule_of({rule, nonfinite::propagate, 0, {}});
  };
  // a = NaN poisons the tile, except pow2: t = NaN, its field 255 + 1 is clamped to 254, s = 2^127,
  // y = 224 * 2^-127.
  for (const scale_rule rule : {scale_rule::te, scale_rule::div, scale_rule::rcp}) {
    expect(quantize_tile({negative_nan, code(224), code(0)}, rule_with(rule)), {0x7FFFFFFF},
           {0x7F, 0x7F, 0x7F});
  }
  expect(quantize_tile({negative_nan, code(-224)}, rule_with(scale_rule::pow2)), {0x7F000000},
         {0x7F, 0x80});
  // a = Inf: S or r is 0 and s is Inf; Inf * 0 and Inf / Inf are NaN, the rest is 0.
  for (const scale_rule rule : {scale_rule::te, scale_rule::div, scale_rule::rcp}) {
    expect(quantize_tile(codes({infinity, 224, -1}), rule_with(rule)), {0x7F800000},
           {0x7F, 0x00, 0x80});
  }
  expect(quantize_tile(codes({infinity, 224, -1}), rule_with(scale_rule::pow2)), {0x7F000000},
         {0x7E, 0x00, 0x80});
  // Inf obeys the bound (a = 224, S = 2), NaN does not.
  quantize_rule bounded = rule_with(scale_rule::te);
  bounded.scale.upper_bound = code(224);
  EXPECT_EQ(quantize_tile(codes({infinity, 112}), bounded).codes, (bytes{0x7E, 0x76}));
  EXPECT_EQ(quantize_tile({0x7FC00000, code(112)}, bounded).codes, (bytes{0x7F, 0x7F}));
}

// eps = 7/16: S = 1024, s = 2^-10; y = 1. A zero tile is one of amax eps then.
TEST(OracleQuantize, Eps) {
  const scale_settings eps{scale_rule::te, nonfinite::te, code(0.4375f), {}};
  expect(quantize_tile(codes({0x1p-10f, 0.0f, -0.0f}), rule_of(eps)), {0x3A800000},
         {0x38, 0x00, 0x80});
  EXPECT_EQ(quantize_tile(codes({0.0f}), rule_of(eps)).scales, (words{0x3A800000}));
  // Beneath amax it does nothing; above the bound, the bound holds.
  EXPECT_EQ(quantize_tile(codes({448}), rule_of(eps)).scales, (words{0x3F800000}));
  const scale_settings both{scale_rule::te, nonfinite::te, code(448), code(224)};
  EXPECT_EQ(quantize_tile(codes({1}), rule_of(both)).scales, (words{0x3F000000}));
}

// Bound 448: S = 1. 896 saturates; 100 is the tie of 96 (q = 12) and 104.
TEST(OracleQuantize, UpperBound) {
  const scale_settings bound{scale_rule::te, nonfinite::te, 0, code(448)};
  const quantized q = quantize_tile(codes({-896, 100}), rule_of(bound));
  EXPECT_EQ(q.scales, (words{0x3F800000}));
  EXPECT_EQ(q.codes, (bytes{0xFE, 0x6C}));
  EXPECT_EQ(q.statistics.overflowed, 1u);
  // Under ieee the overflow is NaN, with the sign where it is kept; nothing is clamped.
  quantize_rule ieee = rule_of(bound, overflow::ieee);
  EXPECT_EQ(quantize_tile(codes({-896, 100}), ieee).codes, (bytes{0x7F, 0x6C}));
  ieee.cast.nan = nan_policy::preserve_sign;
  const quantized nan = quantize_tile(codes({-896, 100}), ieee);
  EXPECT_EQ(nan.codes, (bytes{0xFF, 0x6C}));
  EXPECT_EQ(nan.statistics.overflowed, 1u);
  // A bound of 0 makes a zero tile.
  const scale_settings none{scale_rule::te, nonfinite::te, 0, 0};
  expect(quantize_tile(codes({8}), rule_of(none)), {0x3F800000}, {0x50});
  // 1e30 * (448 / 1e-30) is beyond binary32: y = Inf, an infinite input to the cast.
  const scale_settings tiny{scale_rule::te, nonfinite::te, 0, code(1e-30f)};
  EXPECT_EQ(quantize_tile(codes({-1e30f}), rule_of(tiny)).codes, (bytes{0xFE}));
  EXPECT_EQ(quantize_tile(codes({-1e30f}), rule_of(tiny, overflow::saturate_finite)).codes,
            (bytes{0x7F}));
}

// 3 x 5 in tiles of 2 x 2: 2 x 3 of them, with one row or column at the edges. Element (r, c) is
// 2^k (5r + c), or 2^k * 448 in the corner of tile k, so that S = 2^-k is exact and a code is the
// e4m3 code of 5r + c: 1 38, 5 4A, 6 4C, 7 4E, 8 50, 9 51, 3 44, 11 53, 13 55.
TEST(OracleQuantize, Tails) {
  const words x = codes({448, 1, 2 * 448, 2 * 3, 4 * 448,  //
                         5, 6, 2 * 7, 2 * 8, 4 * 9,        //
                         8 * 448, 8 * 11, 16 * 448, 16 * 13, 32 * 448});
  const tiling tiles{3, 5, 2, 2};
  const quantized q = quantize(fp32, e4m3, x, tiles, rule_of({}));
  const bytes expected{0x7E, 0x38, 0x7E, 0x44, 0x7E,  //
                       0x4A, 0x4C, 0x4E, 0x50, 0x51,  //
                       0x7E, 0x53, 0x7E, 0x55, 0x7E};
  EXPECT_EQ(q.codes, expected);
  EXPECT_EQ(q.scales, codes({1, 2, 4, 8, 16, 32}));
  // Everything was exact, so the codes give the source back.
  EXPECT_EQ(dequantize(e4m3, fp32, q.codes, q.scales, tiles), x);
  EXPECT_EQ(q.statistics.error_energy, 0u);
}

TEST(OracleQuantize, TileLargerThanTheMatrixAndEmpty) {
  const quantized whole =
      quantize(fp32, e4m3, codes({448, 1, 2, 3}), {2, 2, 128, 128}, rule_of({}));
  EXPECT_EQ(whole.scales, codes({1}));
  const quantized empty = quantize(fp32, e4m3, {}, {0, 7, 1, 4}, rule_of({}));
  EXPECT_TRUE(empty.codes.empty() && empty.scales.empty());
  EXPECT_EQ(empty.statistics, quantize_statistics{});
}

// Seed 1, stream 0, K = 32, pitch 4: elements 0, 1, 4, 5. Words (contract §3): 0 E3E80670,
// 1 E50A0EBC, 4 AC08141B. In [16, 32) the spacing is 2, so x = 16 + 2v, code 58 or 59 (away).
//   index 0, v = 7/64: 1C000000 + E3E80670 = FFE80670 stays
//   index 1, v = 7/64: 1C000000 + E50A0EBC carries, away (with index 4 it would stay)
//   index 4, v = 5/16: 50000000 + AC08141B = FC08141B stays (with index 1 it would go away)
//   448 is a code and is not randomised.
TEST(OracleQuantize, StochasticIndices) {
  quantize_rule rule = rule_of({});
  rule.cast.rounding = rounding::stochastic;
  rule.random = {1, 0, 0, 4, 32};
  const float v7 = 16 + 2 * 7 / 64.0f;
  const words x = codes({v7, v7, 16 + 2 * 5 / 16.0f, 448});
  const quantized q = quantize(fp32, e4m3, x, {2, 2, 2, 2}, rule);
  EXPECT_EQ(q.codes, (bytes{0x58, 0x59, 0x58, 0x7E}));
  // Offset 1 moves element (0, 0) to index 1. K = 1: R is the top bit, 1 at indices 0, 1 and 4, and
  // floor(2v) = 0 below the middle: all stay.
  rule.random.offset = 1;
  EXPECT_EQ(quantize(fp32, e4m3, x, {2, 2, 2, 2}, rule).codes[0], 0x59);
  rule.random.bits = 1;
  EXPECT_EQ(quantize(fp32, e4m3, x, {2, 2, 2, 2}, rule).codes[0], 0x58);
  // A column shard, elements (0, 1) and (1, 1) of the 2 x 4 whole: offset 1, the whole's pitch.
  rule.random = {1, 0, 1, 4, 32};
  const quantized shard = quantize(fp32, e4m3, codes({v7, 448}), {2, 1, 2, 1}, rule);
  EXPECT_EQ(shard.codes, (bytes{0x59, 0x7E}));
}

// Bound 448, so s = 1:         y        x^      d      d^2     x^2
//   448                        448      448     0      0       200704
//   0, -0                      0        0       0      0       0
//   2^-20                      2^-20    0       2^-20  2^-40   2^-40
//   NaN, -Inf                                   (+0)
//   17 = tie of 16 and 18      17       16      1      1       289
//   1000                       1000     448     552    304704  1000000
// Errors: ((0+0) + (0+2^-40)) + ((0+0) + (1+304704)) = 2^-40 + 304705 -> 304705 (59 bits needed).
// Signal: ((200704+0) + (0+2^-40)) -> 200704 (58 bits needed); + (0 + 1000289) = 1200993.
TEST(OracleQuantize, Statistics) {
  const scale_settings scale{scale_rule::te, nonfinite::skip_nonfinite, 0, code(448)};
  const words x{code(448),    code(0),         code(-0.0f), code(0x1p-20f),
                negative_nan, code(-infinity), code(17),    code(1000)};
  const quantize_statistics s = quantize_tile(x, rule_of(scale)).statistics;
  EXPECT_EQ(s.amax, 0x7FFFFFFFu);
  EXPECT_EQ(s.min_nonzero, code(0x1p-20f));
  EXPECT_EQ(s.zeros, 2u);
  EXPECT_EQ(s.underflowed, 1u);
  EXPECT_EQ(s.overflowed, 1u);
  EXPECT_EQ(s.nan, 1u);
  EXPECT_EQ(s.inf, 1u);
  EXPECT_EQ(s.error_energy, std::bit_cast<std::uint64_t>(304705.0));
  EXPECT_EQ(s.signal_energy, std::bit_cast<std::uint64_t>(1200993.0));
}

// s = 1, v = 2^-27, v^2 = 2^-54 = u/4 with u = 2^-52. Inputs of the signal of {1, NaN, v, v, v, v,
// v}:
// ((1+0) + (v^2+v^2)) + ((v^2+v^2) + v^2) = (1 + u/2 -> 1) + 3u/4 -> 1 + u. Without the NaN's place
// it would be ((1+v^2) + 2v^2) + 2v^2 -> 1. The errors of {17, ...} are the same numbers.
TEST(OracleQuantize, LeavesKeepTheirPlace) {
  const scale_settings scale{scale_rule::te, nonfinite::te, code(448), code(448)};
  const float v = 0x1p-27f;
  const std::uint64_t sum = std::bit_cast<std::uint64_t>(1 + 0x1p-52);
  words x = codes({1, 0, v, v, v, v, v});
  x[1] = negative_nan;
  EXPECT_EQ(quantize_tile(x, rule_of(scale)).statistics.signal_energy, sum);
  x[0] = code(17);
  EXPECT_EQ(quantize_tile(x, rule_of(scale)).statistics.error_energy, sum);
}

// te, a = 13: 13 * RN(448/13) is 448 + 2^-15, which rounds to 448: beyond M, no overflow.
TEST(OracleQuantize, BeyondMaxWithoutOverflow) {
  const quantize_statistics s = quantize_tile(codes({13}), rule_of({})).statistics;
  EXPECT_EQ(s.overflowed, 0u);
  EXPECT_EQ(s.amax, code(13));
}

// 1.125 * EB8E39 * 2^-23 = 8480001 * 2^-26 (hex, 28 bits): binary32 drops the last four, 1, and
// lands on 40048000, a tie of bf16 4004 and 4005. Rounded once it would be 4005.
TEST(OracleDequantize, RoundsToBinary32First) {
  const tiling one{1, 1, 1, 1};
  const bytes q{0x39};
  const words s{0x3FEB8E39};
  EXPECT_EQ(dequantize(e4m3, fp32, q, s, one), (words{0x40048000}));
  EXPECT_EQ(dequantize(e4m3, bf16, q, s, one), (words{0x4004}));
}

TEST(OracleDequantize, Specials) {
  const auto value = [](const format& from, std::uint8_t q, std::uint32_t s) {
    return dequantized_value(from, q, s);
  };
  EXPECT_EQ(value(e4m3, 0xFF, 0x3F800000), 0x7FFFFFFFu);
  EXPECT_EQ(value(e4m3, 0x80, 0x3F800000), 0x80000000u);
  EXPECT_EQ(value(e4m3, 0x00, 0x7F800000), 0x7FFFFFFFu);
  EXPECT_EQ(value(e5m2, 0xFC, 0x3F800000), 0xFF800000u);
  EXPECT_EQ(value(e4m3, 0x7E, 0x7B800000), 0x7F800000u);  // 448 * 2^120 = 1.75 * 2^128
  EXPECT_EQ(value(e4m3, 0x78, 0x00200000), 0x03800000u);  // 2^8 * 2^-128 = 2^-120
  // 448 * 256 exceeds fp16: Inf by default, 65504 by saturate.
  const tiling one{1, 1, 1, 1};
  const bytes q{0x7E};
  const words s{0x43800000};
  EXPECT_EQ(dequantize(e4m3, fp16, q, s, one), (words{0x7C00}));
  EXPECT_EQ(dequantize(e4m3, fp16, q, s, one, {rounding::nearest_even, overflow::saturate}),
            (words{0x7BFF}));
}

}  // namespace
}  // namespace samebits::oracle
