// encode: the cases the contract names, one by one, as constant expressions.
#include "numerics/bits/encode.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "samebits/scalar.hpp"

namespace samebits {
namespace {

using enum format_id;
using limits = std::numeric_limits<float>;

constexpr float inf = limits::infinity();
constexpr cast_rule with(rounding r, overflow o = overflow::ieee,
                         nan_policy n = nan_policy::canonical) {
  return {r, o, n};
}
constexpr cast_rule with(overflow o, nan_policy n = nan_policy::canonical) {
  return {rounding::nearest_even, o, n};
}
constexpr auto saturate = with(overflow::saturate);
constexpr auto saturate_finite = with(overflow::saturate_finite);

// Ties at the top: e4m3's 464 lies midway to 480, whose code is NaN's; 448 is even.
static_assert(encode<e4m3>(464.0f) == 0b0'1111'110);
static_assert(encode<e4m3>(std::bit_cast<float>(std::bit_cast<std::uint32_t>(464.0f) + 1)) == 0x7F);
static_assert(encode<e4m3>(464.0f, with(rounding::nearest_away)) == 0x7F);
static_assert(encode<e5m2>(61440.0f) == 0b0'11111'00);
static_assert(encode<e5m2>(-61440.0f) == 0b1'11111'00);
static_assert(encode<e5m2>(61439.0f) == 0b0'11110'11);
static_assert(encode<fp16>(65520.0f) == 0x7C00);
static_assert(encode<fp16>(65519.0f) == 0x7BFF);
static_assert(encode<bf16>(limits::max()) == 0x7F80);

// Modes that stop at max under ieee.
static_assert(encode<e4m3>(500.0f, with(rounding::toward_zero)) == 0x7E);
static_assert(encode<e4m3>(500.0f, with(rounding::to_odd)) == 0x7E);
static_assert(encode<e4m3>(449.0f, with(rounding::to_odd)) == 0x7E);
static_assert(encode<e4m3>(500.0f, with(rounding::downward)) == 0x7E);
static_assert(encode<e4m3>(500.0f, with(rounding::upward)) == 0x7F);
static_assert(encode<e4m3>(-500.0f, with(rounding::upward)) == 0xFE);
static_assert(encode<e4m3>(-500.0f, with(rounding::downward)) == 0x7F);
static_assert(encode<e4m3>(-500.0f, with(rounding::downward, overflow::ieee,
                                         nan_policy::preserve_sign)) == 0xFF);
static_assert(encode<e5m2>(-60000.0f, with(rounding::downward)) == 0xFC);

// Inf input takes its policy in every mode.
static_assert(encode<e4m3>(inf) == 0x7F && encode<e4m3>(-inf) == 0x7F);
static_assert(encode<e4m3>(-inf, with(overflow::ieee, nan_policy::preserve_sign)) == 0xFF);
static_assert(encode<e4m3>(inf, with(rounding::toward_zero)) == 0x7F);
static_assert(encode<e4m3>(-inf, saturate) == 0xFE && encode<e4m3>(-inf, saturate_finite) == 0x7F);
static_assert(encode<e5m2>(-inf, saturate) == 0xFB && encode<e5m2>(-inf, saturate_finite) == 0xFC);
static_assert(encode<e5m2>(60000.0f, saturate_finite) == 0x7B);
static_assert(encode<e2m1>(inf) == 0x07 && encode<e2m1>(-inf) == 0x0F);
static_assert(convert_code<fp32, fp32>(0xFF800000u, saturate) == 0xFF7FFFFFu);

// NaN: canonical, or with its sign where the format's NaN has one.
constexpr std::uint32_t negative_nan = 0xFF800001u;
static_assert(convert_code<fp32, fp32>(negative_nan) == 0x7FFFFFFFu);
static_assert(convert_code<tf32, fp32>(negative_nan) == 0x7FFFE000u);
static_assert(convert_code<fp64, fp32>(negative_nan) == 0x7FFFFFFFFFFFFFFFu);
static_assert(convert_code<bf16, fp32>(negative_nan,
                                       with(overflow::ieee, nan_policy::preserve_sign)) == 0xFFFFu);
static_assert(convert_code<e4m3fnuz, fp32>(negative_nan, with(overflow::ieee,
                                                              nan_policy::preserve_sign)) == 0x80u);
static_assert(convert_code<e8m0, fp32>(negative_nan) == 0xFFu);
static_assert(convert_code<e2m1, fp32>(negative_nan,
                                       with(overflow::ieee, nan_policy::preserve_sign)) == 0x07u);
static_assert(convert_code<fp32, e4m3fnuz>(0x80u, with(overflow::ieee,
                                                       nan_policy::preserve_sign)) == 0x7FFFFFFFu);

// Zeros and underflow; fnuz has no -0.
static_assert(encode<bf16>(-0.0f) == 0x8000u && encode<e2m1>(-0.1f) == 0x08u);
static_assert(encode<e4m3fnuz>(-0.0f) == 0x00u && encode<e5m2fnuz>(-1e-9f) == 0x00u);
static_assert(encode<e4m3>(-0x1p-10f) == 0x80u);  // tie to even 0
static_assert(encode<e4m3>(-0x1p-10f, with(rounding::nearest_away)) == 0x81u);
static_assert(encode<e4m3>(1e-30f, with(rounding::to_odd)) == 0x01u);
static_assert(encode<e4m3>(1e-30f, with(rounding::upward)) == 0x01u);
static_assert(encode<e4m3>(-1e-30f, with(rounding::upward)) == 0x80u);
static_assert(encode<bf16>(limits::denorm_min(), with(rounding::upward)) == 0x0001u);

// e8m0: powers of two, the sign ignored.
static_assert(encode<e8m0>(1.5f) == 128 && encode<e8m0>(1.4999999f) == 127);
static_assert(encode<e8m0>(-3.0f) == 129 && encode<e8m0>(-3.0f, with(rounding::upward)) == 129);
static_assert(encode<e8m0>(2.5f, with(rounding::upward)) == 129);
static_assert(encode<e8m0>(-2.5f, with(rounding::downward)) == 128);
static_assert(encode<e8m0>(3.9f, with(rounding::to_odd)) == 128);
static_assert(encode<e8m0>(0.0f) == 0 && encode<e8m0>(limits::denorm_min()) == 0);
static_assert(encode<e8m0>(0x1p-127f) == 0 && encode<e8m0>(0x1.8p-127f) == 1);
static_assert(encode<e8m0>(0x1.7fffp-127f) == 0 &&
              encode<e8m0>(0x1.0001p-127f, with(rounding::upward)) == 1);
static_assert(encode<e8m0>(0x1p-128f, with(rounding::upward)) == 0);
static_assert(encode<e8m0>(0x1.8p127f) == 0xFF && encode<e8m0>(0x1.8p127f, saturate) == 0xFE);
static_assert(encode<e8m0>(0x1.8p127f, saturate_finite) == 0xFE &&
              encode<e8m0>(inf, saturate_finite) == 0xFF);
static_assert(encode<e8m0>(0x1.8p127f, with(rounding::toward_zero)) == 0xFE);
static_assert(encode<e8m0>(0x1.8p127f, with(rounding::to_odd)) == 0xFE);
static_assert(encode<e8m0>(-0x1.8p127f, with(rounding::upward)) == 0xFF);
static_assert(encode<e8m0>(-0x1p128, with(rounding::downward)) == 0xFE);
static_assert(encode<e8m0>(inf, saturate) == 0xFE &&
              encode<e8m0>(inf, with(rounding::downward)) == 0xFF);
static_assert(encode<e8m0>(0x1.8p-127) == 1 && encode<e8m0>(1e300) == 0xFF &&
              encode<e8m0>(1e-300) == 0);

// From binary64 once: 1 + 2^-11 + 2^-40 lies above fp16's tie; through binary32 it would fall to
// it.
static_assert(encode<fp16>(1.0 + 0x1p-11 + 0x1p-40) == 0x3C01);
static_assert(encode<fp16>(static_cast<float>(1.0 + 0x1p-11 + 0x1p-40)) == 0x3C00);
static_assert(encode<fp32>(0x1p-150 + 0x1p-200) == 1u);

TEST(Encode, ReportsWhatHappened) {
  const auto report = [](double x, format_id to, const cast_rule& rule = {}) {
    return convert_code(fp64, to, std::bit_cast<std::uint64_t>(x), rule);
  };
  EXPECT_FALSE(report(448.0, e4m3).inexact);
  EXPECT_TRUE(report(464.0, e4m3).inexact);
  EXPECT_FALSE(report(464.0, e4m3).overflow);
  EXPECT_TRUE(report(465.0, e4m3).overflow);
  EXPECT_TRUE(report(465.0, e4m3, saturate).overflow);
  EXPECT_TRUE(report(7.0, e2m1).overflow);
  EXPECT_FALSE(report(INFINITY, e2m1).overflow);
  EXPECT_FALSE(report(INFINITY, e2m1).inexact);
  EXPECT_FALSE(report(NAN, e2m1).inexact);
  EXPECT_TRUE(report(480.0, e4m3, with(rounding::toward_zero)).overflow);
  EXPECT_TRUE(report(0.0, e8m0).inexact);
  EXPECT_TRUE(report(-2.0, e8m0).inexact);
  EXPECT_FALSE(report(2.0, e8m0).inexact);
  EXPECT_FALSE(report(-0.0, e4m3fnuz).inexact);
}

TEST(EncodeScaled, AgreesWithEncodeWhereBothApply) {
  std::uint64_t compared = 0;
  for (int i = 0; i < format_count; ++i) {
    const format_spec to = spec_of(format_at(i));
    for (int exponent = -1080; exponent <= 1023;
         exponent += exponent < -160 || exponent > 140 ? 37 : 1) {
      for (const std::uint64_t m : {0x10000000000000u, 0x10000000000001u, 0x18000000000000u,
                                    0x1C000000000000u, 0x1FFFFFFFFFFFFFu, 0x14000000000000u}) {
        for (int mode = 0; mode < enum_count<rounding>; ++mode) {
          for (const bool negative : {false, true}) {
            const double value = std::ldexp(static_cast<double>(m), exponent - 52);
            if (!std::isfinite(value) || std::ldexp(value, 52 - exponent) != static_cast<double>(m))
              continue;
            const cast_rule rule = with(static_cast<rounding>(mode));
            const std::uint64_t dither = 0x9E3779B900000000u;
            const auto expected = numerics::encode<std::uint64_t>(
                to, rule, std::bit_cast<std::uint64_t>(negative ? -value : value), dither);
            const auto got = numerics::encode_scaled(to, rule, negative, m, exponent - 52, dither);
            ASSERT_EQ(got.code, expected.code) << to.name << " " << value << " mode " << mode;
            ASSERT_EQ(got.inexact, expected.inexact) << to.name << " " << value;
            ASSERT_EQ(got.overflow, expected.overflow) << to.name << " " << value;
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 200'000u);
}

}  // namespace
}  // namespace samebits
