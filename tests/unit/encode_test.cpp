// encode: constant expressions. The cases that the contract names are worked for the oracle, in
// tests/oracle/oracle_test.cpp; property.convert and the exhaustive tests compare all formats and
// rules with it, what is reported too; so do the recorded cases of support.mutation_killer.
#include "numerics/bits/encode.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "samebits/scalar.hpp"

namespace samebits {
namespace {

using enum format_id;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr cast_rule with(rounding r, overflow o = overflow::ieee,
                         nan_policy n = nan_policy::canonical) {
  return {r, o, n};
}
constexpr cast_rule saturate = {rounding::nearest_even, overflow::saturate};

// Ties at the top: e4m3's 464 lies midway to 480, whose code is NaN's; 448 is even.
static_assert(encode<e4m3>(464.0f) == 0b0'1111'110);
static_assert(encode<e5m2>(-61440.0f) == 0b1'11111'00);
// Modes that stop at max under ieee; Inf takes its policy in every mode.
static_assert(encode<e4m3>(500.0f, with(rounding::to_odd)) == 0x7E);
static_assert(encode<e4m3>(inf, with(rounding::toward_zero)) == 0x7F);
static_assert(encode<e5m2>(-inf, saturate) == 0xFB);
// NaN: canonical, or with its sign where the format's NaN has one.
constexpr std::uint32_t negative_nan = 0xFF800001u;
static_assert(convert_code<tf32, fp32>(negative_nan) == 0x7FFFE000u);
static_assert(convert_code<bf16, fp32>(negative_nan, with(rounding::nearest_even, overflow::ieee,
                                                          nan_policy::preserve_sign)) == 0xFFFFu);
// fnuz has no -0; e8m0 ignores the sign.
static_assert(encode<e4m3fnuz>(-0.0f) == 0x00u && encode<e4m3>(-0x1p-10f) == 0x80u);
static_assert(encode<e8m0>(-3.0f) == 129 && encode<e8m0>(0x1.8p127f) == 0xFF);
// From binary64 once: 1 + 2^-11 + 2^-40 lies above fp16's tie; through binary32 it would fall to
// it.
static_assert(encode<fp16>(1.0 + 0x1p-11 + 0x1p-40) == 0x3C01);
static_assert(encode<fp16>(static_cast<float>(1.0 + 0x1p-11 + 0x1p-40)) == 0x3C00);

TEST(Encode, AtRunTimeAsAtCompileTime) {
  const volatile float tie = 464.0f, large = 500.0f;
  EXPECT_EQ(encode<e4m3>(tie), 0b0'1111'110);
  EXPECT_EQ(encode<e4m3>(large, with(rounding::to_odd)), 0x7E);
}

}  // namespace
}  // namespace samebits
