// Tests of failure texts: fields, values, options, random bits and a command that repeats the case.
#include <gtest/gtest.h>

#include <string>

#include "support/conversion_case.hpp"

namespace samebits::support {
namespace {

using enum format_id;

TEST(FailureText, CodesByField) {
  EXPECT_EQ(code_text(fp32, 0x43E80000),
            "0x43E80000 = 0|10000111|11010000000000000000000 = 0x1.dp+8 = 464");
  EXPECT_EQ(code_text(e4m3, 0x7E), "0x7E = 0|1111|110 = 0x1.cp+8 = 448");
  EXPECT_EQ(code_text(e4m3, 0xFF), "0xFF = 1|1111|111 = -nan = -nan");
  EXPECT_EQ(code_text(e5m2, 0xFC), "0xFC = 1|11111|00 = -inf = -inf");
  EXPECT_EQ(code_text(fp16, 0x8001),
            "0x8001 = 1|00000|0000000001 = -0x1p-24 = -5.960464477539063e-08");
  EXPECT_EQ(code_text(bf16, 0x8000), "0x8000 = 1|00000000|0000000 = -0x0p+0 = -0");
  EXPECT_EQ(code_text(e2m1, 0x17), "0x17 = 0|11|1 = 0x1.8p+2 = 6");
  EXPECT_EQ(code_text(e8m0, 0x80), "0x80 = 10000000 = 0x1p+1 = 2");
  EXPECT_EQ(code_text(tf32, 0x3FC02001),
            "0x3FC02001 = 0|01111111|1000000001|0000000000001 = 0x1.804p+0 = 1.5009765625");
  EXPECT_EQ(
      code_text(fp64, 0x3FB999999999999A),
      "0x3FB999999999999A = 0|01111111011|1001100110011001100110011001100110011001100110011010"
      " = 0x1.999999999999ap-4 = 0.1");
  EXPECT_EQ(code_text(e4m3, 0x17E), "0x17E = 0|1111|110 = no code of the format");
}

TEST(FailureText, EqualCodesSayNothing) {
  const auto result = same_code({fp32, e4m3, 0x43E80000, {}, {}, {}}, 0x7E, 0x7E);
  EXPECT_TRUE(result);
  EXPECT_STREQ(result.message(), "");
}

TEST(FailureText, Deterministic) {
  conversion_case c{fp32, e4m3, 0xC3E80001, {rounding::nearest_away, overflow::saturate_finite}};
  const auto result = same_code(c, 0xFF, 0xFE);
  ASSERT_FALSE(result);
  EXPECT_STREQ(result.message(),
               "fp32 to e4m3, nearest_away saturate_finite canonical, by convert_code\n"
               "  input    0xC3E80001 = 1|10000111|11010000000000000000001 = -0x1.d00002p+8 = "
               "-464.0000305175781\n"
               "  got      0xFF = 1|1111|111 = -nan = -nan\n"
               "  expected 0xFE = 1|1111|110 = -0x1.cp+8 = -448\n"
               "  repeat with: fpinspect cast --to e4m3 --rounding nearest_away "
               "--overflow saturate_finite --nan canonical -- -0x1.d00002p+8");
}

TEST(FailureText, RandomBitsWithAnOrigin) {
  conversion_case c{
      bf16, e5m2, 0x3F81, {rounding::stochastic, overflow::ieee, nan_policy::preserve_sign}};
  c.random = {0x70BB, 16};
  c.origin = {{0x123456789ABCDEF0, 5, 3}};
  c.where = "reference, 2 threads";
  const auto result = same_code(c, 0x3C, 0x3D);
  ASSERT_FALSE(result);
  EXPECT_STREQ(result.message(),
               "bf16 to e5m2, stochastic ieee preserve_sign, by reference, 2 threads\n"
               "  random bits 0x000070BB of K = 16 (seed 1311768467463790320, stream 5, index 3)\n"
               "  input    0x3F81 = 0|01111111|0000001 = 0x1.02p+0 = 1.0078125\n"
               "  got      0x3C = 0|01111|00 = 0x1p+0 = 1\n"
               "  expected 0x3D = 0|01111|01 = 0x1.4p+0 = 1.25\n"
               "  repeat with: python3 -c \"import numpy as n; n.save('case.npy', "
               "n.array([0x3F81], '<u2'))\" && fpinspect convert case.npy out.npy --from bf16 "
               "--to e5m2 --rounding stochastic --overflow ieee --nan preserve_sign "
               "--seed 1311768467463790320 --stream 5 --offset 3 --random-bits 16");
}

TEST(FailureText, Reproductions) {
  const auto text = [](format_id from, format_id to, std::uint64_t input, cast_rule rule = {}) {
    return reproduction({from, to, input, rule, {}, {}});
  };
  const std::string plain = "--rounding nearest_even --overflow ieee --nan canonical";
  EXPECT_EQ(text(fp32, e4m3, 0xFF800000), "fpinspect cast --to e4m3 " + plain + " -- -inf");
  EXPECT_EQ(text(fp32, e4m3, 0xFFFFFFFF), "fpinspect cast --to e4m3 " + plain + " -- -nan");
  EXPECT_EQ(text(fp64, fp16, 0x3FF0000000000001),
            "fpinspect cast --to fp16 " + plain + " -- 0x1.0000000000001p+0");
  // A payload, and bits that the format ignores, say more than the value.
  EXPECT_EQ(text(fp32, e4m3, 0x7F800001),
            "python3 -c \"import numpy as n; n.save('case.npy', n.array([0x7F800001], '<u4'))\" && "
            "fpinspect convert case.npy out.npy --from fp32 --to e4m3 " +
                plain);
  EXPECT_EQ(text(e2m1, e4m3, 0xF7),
            "python3 -c \"import numpy as n; n.save('case.npy', n.array([0xF7], '<u1'))\" && "
            "fpinspect convert case.npy out.npy --from e2m1 --to e4m3 " +
                plain);
  EXPECT_EQ(text(fp64, e4m3, 0x7FF0000000000001),
            "python3 -c \"import numpy as n; n.save('case.npy', n.array([0x7FF0000000000001], "
            "'<u8').view('<f8'))\" && fpinspect convert case.npy out.npy --to e4m3 " +
                plain);
  // Bits without an origin cannot be asked of a command.
  conversion_case c{fp32, e4m3, 0x3F810000, {rounding::stochastic}};
  c.random = {0xABC, 12};
  EXPECT_EQ(reproduction(c),
            "convert_code(format_id::fp32, format_id::e4m3, 0x3F810000, {rounding::stochastic, "
            "overflow::ieee, nan_policy::canonical}, {0x00000ABC, 12})");
}

}  // namespace
}  // namespace samebits::support
