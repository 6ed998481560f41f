// Text: known texts, all codes of the small formats, grammar, limits and malformed input.
// property.text compares shortest texts with a search and readings with the oracle.
#include "samebits/text.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "numerics/bits/layout.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using enum format_id;

std::uint64_t code_of(format_id f, std::string_view text, const cast_rule& rule = {},
                      const random_bits& random = {}) {
  const parse_result r = parse(f, text, rule, random);
  EXPECT_TRUE(r.ok) << text << " is refused at " << r.error_offset;
  return r.code;
}

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }

TEST(Writers, SpecialsAndZeros) {
  for (const auto write : {to_shortest, to_exact_decimal, to_hex_float}) {
    EXPECT_EQ(write(fp64, 0x7FF0000000000000), "inf");
    EXPECT_EQ(write(fp16, 0xFC00), "-inf");
    EXPECT_EQ(write(bf16, 0x7FC0), "nan");
    EXPECT_EQ(write(e5m2, 0xFD), "-nan");
    EXPECT_EQ(write(e4m3, 0xFF), "-nan");
    EXPECT_EQ(write(e4m3fnuz, 0x80), "nan");
    EXPECT_EQ(write(e8m0, 0xFF), "nan");
  }
  EXPECT_EQ(to_shortest(e2m1, 0x08), "-0");
  EXPECT_EQ(to_exact_decimal(fp32, 0x80000000), "-0");
  EXPECT_EQ(to_hex_float(fp32, 0x80000000), "-0x0p+0");
  EXPECT_EQ(to_shortest(e5m2fnuz, 0x00), "0");
  EXPECT_EQ(to_hex_float(e5m2fnuz, 0x00), "0x0p+0");
}

TEST(Writers, IgnoreBitsThatAreNotTheFormats) {
  EXPECT_EQ(to_shortest(e2m1, 0xF7), "6");
  EXPECT_EQ(to_shortest(e2m3, 0xFFFFFFFFFFFFFFDF), "7.5");
  EXPECT_EQ(to_exact_decimal(tf32, 0x3F801FFF), "1");
  EXPECT_EQ(to_hex_float(e4m3, 0xABCD38), "0x1p+0");
}

TEST(ToExactDecimal, KnownTexts) {
  EXPECT_EQ(to_exact_decimal(fp64, bits_of(0.1)),
            "0.1000000000000000055511151231257827021181583404541015625");
  EXPECT_EQ(to_exact_decimal(bf16, 0x7F7F), "338953138925153547590470800371487866880");
  EXPECT_EQ(to_exact_decimal(e4m3, 0x81), "-0.001953125");
  EXPECT_EQ(to_exact_decimal(fp16, 0x0001), "0.000000059604644775390625");
  const std::string minimum = to_exact_decimal(fp64, 1);
  EXPECT_EQ(minimum.size(), 2u + 1074u);
  EXPECT_EQ(minimum.substr(0, 2 + 323 + 20), "0." + std::string(323, '0') + "49406564584124654417");
  EXPECT_EQ(minimum.substr(minimum.size() - 10), "3447265625");
}

TEST(ToHexFloat, KnownTexts) {
  EXPECT_EQ(to_hex_float(fp64, bits_of(0.1)), "0x1.999999999999ap-4");
  EXPECT_EQ(to_hex_float(fp64, bits_of(1.7976931348623157e308)), "0x1.fffffffffffffp+1023");
  EXPECT_EQ(to_hex_float(fp64, 3), "0x1.8p-1073");
  EXPECT_EQ(to_hex_float(fp32, 0x80000001), "-0x1p-149");
  EXPECT_EQ(to_hex_float(fp32, 0x3F800001), "0x1.000002p+0");
  EXPECT_EQ(to_hex_float(e4m3, 0x7E), "0x1.cp+8");
  EXPECT_EQ(to_hex_float(e8m0, 0x00), "0x1p-127");
}

TEST(RoundTrip, EveryCodeOfEveryFormatUpTo16Bits) {
  constexpr cast_rule keep_sign{.nan = nan_policy::preserve_sign};
  for (const format_id f : support::formats_up_to(16)) {
    const format_spec spec = spec_of(f);
    const std::uint64_t end = numerics::code_mask(spec) + 1;
    for (std::uint64_t code = 0; code < end; ++code) {
      for (const auto write : {to_shortest, to_exact_decimal, to_hex_float}) {
        const std::string text = write(f, code);
        const parse_result r = parse(f, text, keep_sign);
        const std::uint64_t sign = code & numerics::sign_mask(spec);
        const std::uint64_t want = is_nan(f, code) ? canonical_nan(f) | sign : code;
        ASSERT_TRUE(r.ok) << name(f) << " " << code << " " << text;
        ASSERT_EQ(r.code, want) << name(f) << " " << text;
        ASSERT_FALSE(r.overflow) << name(f) << " " << text;
        if (write != to_shortest) {
          ASSERT_FALSE(r.inexact) << name(f) << " " << text;
        }
      }
    }
  }
}

TEST(Parse, Grammar) {
  EXPECT_EQ(code_of(fp64, "12"), bits_of(12.0));
  EXPECT_EQ(code_of(fp64, "-1.25e-3"), bits_of(-1.25e-3));
  EXPECT_EQ(code_of(fp64, "+.5"), bits_of(0.5));
  EXPECT_EQ(code_of(fp64, "5."), bits_of(5.0));
  EXPECT_EQ(code_of(fp64, "5.E+1"), bits_of(50.0));
  EXPECT_EQ(code_of(fp64, "000012.5000e0001"), bits_of(125.0));
  EXPECT_EQ(code_of(fp64, "0e99"), bits_of(0.0));
  EXPECT_EQ(code_of(fp64, "-0.000"), bits_of(-0.0));
  EXPECT_EQ(code_of(fp64, "0x1.8p3"), bits_of(12.0));
  EXPECT_EQ(code_of(fp64, "-0X.8P-1"), bits_of(-0.25));
  EXPECT_EQ(code_of(fp64, "0x10"), bits_of(16.0));
  EXPECT_EQ(code_of(fp64, "0x1e2"), bits_of(482.0));
  EXPECT_EQ(code_of(fp64, "0xA.bC"), bits_of(10.734375));
  EXPECT_EQ(code_of(fp64, "-0x0p9"), bits_of(-0.0));
  EXPECT_EQ(code_of(fp16, "InF"), 0x7C00u);
  EXPECT_EQ(code_of(fp16, "-Infinity"), 0xFC00u);
  EXPECT_EQ(code_of(fp16, "+NAN"), 0x7FFFu);
  EXPECT_EQ(code_of(fp16, "-nan"), 0x7FFFu);
  EXPECT_EQ(code_of(fp16, "-nan", {.nan = nan_policy::preserve_sign}), 0xFFFFu);
  EXPECT_EQ(code_of(e2m1, "nan"), 0x07u);
  EXPECT_EQ(code_of(e2m1, "-inf"), 0x0Fu);
  EXPECT_EQ(code_of(e4m3, "inf"), 0x7Fu);
  EXPECT_EQ(code_of(e4m3, "inf", {.overflow = overflow::saturate}), 0x7Eu);
  EXPECT_EQ(code_of(e4m3fnuz, "-0"), 0x00u);
  EXPECT_EQ(code_of(e8m0, "0"), 0x00u);
  EXPECT_EQ(code_of(e8m0, "-8"), 0x82u);
  EXPECT_EQ(code_of(tf32, "-1.5"), 0xBFC00000u);
}

TEST(Parse, MalformedTextsWithTheirOffset) {
  // A text is refused at its '^', which is not part of it.
  for (std::string text : std::initializer_list<std::string>{
           "^",        "+^",       "-^",       "-^-1",       "+^-1",      "^ 1",
           "1^ ",      ".^",       "-.^",      ".^e5",       "^e5",       "1.2^.3",
           "1e^",      "1e+^",     "1e+^-5",   "1e5^.3",     "1e5^e5",    "1^,5",
           "1^_000",   "1^p3",     "1^f",      "0^b1",       "0x^",       "-0x^",
           "0x^g",     "0x.^",     "0x.^p1",   "0x1p^",      "0x1p-^",    "0x1p^a",
           "0x1.8^.1", "0x0^x1",   "^x1",      "i^",         "in^",       "inf^f",
           "infi^",    "infinit^", "infini^x", "infinity^y", "n^",        "na^",
           "nan^(1)",  "nan^x",    "-nan^n",   "1e5^\n",     "^\xC3\xA9", "1^\xE2\x80\xAF"}) {
    const std::size_t offset = text.find('^');
    text.erase(offset, 1);
    for (const format_id f : support::all_formats()) {
      EXPECT_EQ(parse(f, text), (parse_result{false, 0, false, false, offset})) << text;
    }
  }
  EXPECT_EQ(parse(fp64, std::string_view("1\0", 2)), (parse_result{false, 0, false, false, 1}));
  EXPECT_EQ(parse(fp64, std::string_view("\0", 1)), (parse_result{false, 0, false, false, 0}));
}

TEST(Parse, RefusesRandomBitsThatAreNone) {
  constexpr cast_rule stochastic{.rounding = rounding::stochastic};
  EXPECT_THROW(parse(e4m3, "1", stochastic, {0, 0}), invalid_argument);
  EXPECT_THROW(parse(e4m3, "1", stochastic, {0, 33}), invalid_argument);
  EXPECT_THROW(parse(e4m3, "1", stochastic, {4, 2}), invalid_argument);
  EXPECT_EQ(code_of(e4m3, "1", stochastic, {3, 2}), 0x38u);
  EXPECT_EQ(code_of(e4m3, "1", stochastic, {0xFFFFFFFF, 32}), 0x38u);
  EXPECT_EQ(code_of(e4m3, "1", {}, {4, 0}), 0x38u);  // not read by other modes
}

TEST(Parse, AnyExponentAndAnyLength) {
  const std::string zeros(1'000'000, '0');
  const std::string huge = "9" + std::string(200'000, '9');
  for (const format_id f : support::all_formats()) {
    const std::uint64_t infinite = code_of(f, "inf");
    for (const std::string& text :
         std::initializer_list<std::string>{"1e999999999999", "1e" + huge, "0x1p" + huge,
                                            "0." + zeros + "1e" + huge, huge, "0x" + huge}) {
      EXPECT_EQ(parse(f, text), (parse_result{true, infinite, true, true, 0})) << name(f);
      EXPECT_EQ(parse(f, text, {.rounding = rounding::toward_zero}),
                (parse_result{true, max_finite(f), true, true, 0}))
          << name(f);
    }
    for (const std::string& text : std::initializer_list<std::string>{
             "1e-999999999999", "1e-" + huge, "0x1p-" + huge, "1" + zeros + "e-" + huge,
             "0." + zeros + "1", "0x." + zeros + "1"}) {
      EXPECT_EQ(parse(f, text), (parse_result{true, 0, true, false, 0})) << name(f);
      const std::uint64_t minimum = f == e8m0 ? 0 : min_positive(f);
      EXPECT_EQ(code_of(f, text, {.rounding = rounding::to_odd}), minimum) << name(f);
    }
    const std::uint64_t one = code_of(f, "1");
    EXPECT_EQ(parse(f, "0." + zeros + "1e1000001"), (parse_result{true, one, false, false, 0}));
    EXPECT_EQ(parse(f, "1" + zeros + "e-1000000"), (parse_result{true, one, false, false, 0}));
    EXPECT_EQ(parse(f, "0x." + zeros + "1p4000004"), (parse_result{true, one, false, false, 0}));
    EXPECT_EQ(code_of(f, "0e" + huge), code_of(f, "0")) << name(f);
  }
}

TEST(Parse, AHalfwayDecimalIsDecidedByItsLastDigitWhereverItStands) {
  // Between 1 and the next value of each format: 1 + 2^-(M+1), an exact tie to even, then a digit
  // far behind it.
  for (const format_id f : support::all_formats()) {
    const int m = spec_of(f).mantissa_bits;
    const std::uint64_t one = code_of(f, "1");
    const std::uint64_t up = next_up(f, one);
    std::string tie = to_exact_decimal(fp64, bits_of(1 + std::ldexp(1.0, -(m < 51 ? m + 1 : 52))));
    if (f == fp64) tie = "1.00000000000000011102230246251565404236316680908203125";
    for (const std::size_t position : {60u, 800u, 999u, 1000u, 1001u, 1500u, 100'000u}) {
      const std::string padded = tie + std::string(position - tie.size(), '0');
      std::string under = padded;
      under[tie.size() - 1] = '4';
      under.replace(tie.size(), std::string::npos, std::string(position - tie.size(), '9'));
      EXPECT_EQ(code_of(f, padded), f == e8m0 ? up : one) << name(f) << " " << position;
      EXPECT_EQ(code_of(f, padded + "1"), up) << name(f) << " " << position;
      EXPECT_EQ(code_of(f, under), one) << name(f) << " " << position;
    }
    const std::string hex_tie = "0x1." + std::string(static_cast<std::size_t>(m / 4), '0') +
                                "8421"[m % 4] + std::string(100'000, '0');
    EXPECT_EQ(code_of(f, hex_tie), f == e8m0 ? up : one) << name(f);
    EXPECT_EQ(code_of(f, hex_tie + "1"), up) << name(f);
  }
}

}  // namespace
}  // namespace samebits
