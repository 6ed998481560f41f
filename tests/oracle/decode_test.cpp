// Tests of the oracle's table and decoder against hardware floats and each other. exhaustive.narrow compares
// all codes of at most 16 bits with the library, python.ml_dtypes the library's numbers, Inf and NaN with
// ml_dtypes.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "oracle/exact.hpp"
#include "oracle/test_support.hpp"

namespace samebits::oracle {
namespace {

using testing::random_codes;

cpp_rational two_to(int n) {
  return n >= 0 ? cpp_rational(cpp_int(1) << n) : cpp_rational(1, cpp_int(1) << -n);
}

cpp_rational value(const format& f, std::uint64_t code) { return rational_of(decode(f, code)); }

TEST(OracleDecode, TableAgreesWithItself) {
  for (const format& f : format_table) {
    SCOPED_TRACE(f.name);
    EXPECT_EQ(f.sign_bits + f.exponent_bits + f.mantissa_bits + f.unused_low_bits, f.code_bits);
    EXPECT_LE(f.code_bits, f.storage_bits);
    EXPECT_EQ(value(f, f.min_normal), two_to(f.min_normal_exponent));
    EXPECT_EQ(value(f, f.min_subnormal), two_to(f.min_subnormal_exponent));
    const std::uint64_t after_max = f.max_finite + (std::uint64_t{1} << f.unused_low_bits);
    const exact_value beyond = decode(f, after_max);
    if (f.infinity) {
      EXPECT_EQ(*f.infinity, after_max);
      EXPECT_EQ(beyond.kind, value_kind::infinite);
    } else if (f.canonical_nan) {
      EXPECT_EQ(beyond.kind, value_kind::nan);
    } else {
      EXPECT_TRUE(beyond.negative);  // every magnitude is finite: the next code is -0
    }
    if (f.canonical_nan) {
      EXPECT_EQ(decode(f, *f.canonical_nan).kind, value_kind::nan);
      EXPECT_FALSE(decode(f, *f.canonical_nan).negative);
    }
  }
}

TEST(OracleDecode, MaxFiniteOfTheContract) {
  const cpp_rational one = 1;
  EXPECT_EQ(value(format_named("fp64"), format_named("fp64").max_finite),
            cpp_rational(std::numeric_limits<double>::max()));
  EXPECT_EQ(value(format_named("fp32"), format_named("fp32").max_finite),
            cpp_rational(static_cast<double>(std::numeric_limits<float>::max())));
  EXPECT_EQ(value(format_named("fp16"), format_named("fp16").max_finite), 65504);
  EXPECT_EQ(value(format_named("bf16"), format_named("bf16").max_finite),
            two_to(127) * (2 * one - two_to(-7)));
  EXPECT_EQ(value(format_named("tf32"), format_named("tf32").max_finite),
            two_to(127) * (2 * one - two_to(-10)));
  EXPECT_EQ(value(format_named("e4m3"), format_named("e4m3").max_finite), 448);
  EXPECT_EQ(value(format_named("e5m2"), format_named("e5m2").max_finite), 57344);
  EXPECT_EQ(value(format_named("e3m2"), format_named("e3m2").max_finite), 28);
  EXPECT_EQ(value(format_named("e2m3"), format_named("e2m3").max_finite), cpp_rational(15, 2));
  EXPECT_EQ(value(format_named("e2m1"), format_named("e2m1").max_finite), 6);
  EXPECT_EQ(value(format_named("e4m3fnuz"), format_named("e4m3fnuz").max_finite), 240);
  EXPECT_EQ(value(format_named("e5m2fnuz"), format_named("e5m2fnuz").max_finite), 57344);
  EXPECT_EQ(value(format_named("e8m0"), format_named("e8m0").max_finite), two_to(127));
}

TEST(OracleDecode, RelatedFormatsAgree) {
  for (std::uint64_t code = 0; code < 0x7F; ++code) {
    // One more bias than OCP halves every value.
    EXPECT_EQ(2 * value(format_named("e4m3fnuz"), code), value(format_named("e4m3"), code));
    if (code < 0x7C) {
      EXPECT_EQ(2 * value(format_named("e5m2fnuz"), code), value(format_named("e5m2"), code));
      EXPECT_EQ(value(format_named("fp16"), code << 8), value(format_named("e5m2"), code));
    }
    EXPECT_EQ(value(format_named("e8m0"), code), two_to(static_cast<int>(code) - 127));
    EXPECT_EQ(value(format_named("bf16"), code << 8), value(format_named("fp32"), code << 24));
    EXPECT_EQ(value(format_named("tf32"), code << 24), value(format_named("fp32"), code << 24));
  }
}

TEST(OracleDecode, Binary32And64EqualHardware) {
  for (const std::uint64_t code : random_codes(20000, 32, 1)) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(code));
    const exact_value got = decode(format_named("fp32"), code);
    EXPECT_EQ(got.negative, std::signbit(x));
    EXPECT_EQ(got.kind == value_kind::nan, std::isnan(x));
    EXPECT_EQ(got.kind == value_kind::infinite, std::isinf(x));
    if (std::isfinite(x)) {
      EXPECT_EQ(rational_of(got), cpp_rational(static_cast<double>(x)));
    }
  }
  for (const std::uint64_t code : random_codes(5000, 64, 2)) {
    const double x = std::bit_cast<double>(code);
    const exact_value got = decode(format_named("fp64"), code);
    EXPECT_EQ(got.negative, std::signbit(x));
    ASSERT_EQ(got.kind == value_kind::finite, std::isfinite(x));
    if (std::isfinite(x)) {
      EXPECT_EQ(rational_of(got), cpp_rational(x));
    }
  }
}

TEST(OracleDecode, SignsOfNan) {
  EXPECT_TRUE(decode(format_named("e4m3"), 0xFF).negative);
  EXPECT_FALSE(decode(format_named("e4m3fnuz"), 0x80).negative);
  EXPECT_FALSE(decode(format_named("e8m0"), 0xFF).negative);
  EXPECT_TRUE(decode(format_named("fp32"), 0xFFFFFFFF).negative);
}

TEST(OracleDecode, IgnoredBits) {
  EXPECT_EQ(value(format_named("tf32"), 0x3F801FFF), 1);
  EXPECT_EQ(decode(format_named("tf32"), 0x7F801FFF).kind, value_kind::infinite);
  EXPECT_EQ(decode(format_named("tf32"), 0x7F802000).kind, value_kind::nan);
  EXPECT_EQ(value(format_named("e2m1"), 0xF7), 6);
  EXPECT_EQ(value(format_named("e2m1"), 0xFF), -6);
  EXPECT_EQ(value(format_named("e3m2"), 0xDF), 28);
  EXPECT_EQ(value(format_named("e2m3"), 0xE0), 0);
  EXPECT_TRUE(decode(format_named("e2m3"), 0xE0).negative);
  EXPECT_THROW(decode(format_named("e2m1"), 0x100), std::invalid_argument);
  EXPECT_THROW(decode(format_named("fp16"), 0x10000), std::invalid_argument);
  EXPECT_THROW(decode(format_named("fp32"), 0x100000000), std::invalid_argument);
}

TEST(OracleDecode, ExactHelpers) {
  EXPECT_EQ(compare({3, 4}, {6, 3}), std::strong_ordering::equal);
  EXPECT_EQ(compare({1, 200}, {0xFFFFFFFFFFFFFFFF, -200}), std::strong_ordering::greater);
  EXPECT_EQ(compare({0, 500}, {1, -500}), std::strong_ordering::less);
  EXPECT_EQ(compare({0, 500}, {0, -500}), std::strong_ordering::equal);
  EXPECT_EQ(compare({0x8000000000000001, 0}, {1, 63}), std::strong_ordering::greater);
  EXPECT_EQ(compare(midpoint({7, 2}, {4, 3}), {15, 1}), std::strong_ordering::equal);
  EXPECT_THROW(midpoint({1, 0}, {1, 2}), std::invalid_argument);

  const exact_value third = exact_from(cpp_rational(-1, 3));
  EXPECT_TRUE(third.negative);
  EXPECT_EQ(rational_of(third), cpp_rational(-1, 3));
  EXPECT_TRUE(exact_from(0, true).negative);
  EXPECT_FALSE(exact_from(0).negative);
  EXPECT_THROW(rational_of(decode(format_named("fp16"), 0x7C00)), std::invalid_argument);
  EXPECT_THROW(format_named("e9m9"), std::invalid_argument);
}

}  // namespace
}  // namespace samebits::oracle
