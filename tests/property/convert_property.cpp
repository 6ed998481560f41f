// Scalar conversion against the oracle, over bit patterns of every pair of formats and every rule.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cstdint>

#include "oracle/convert.hpp"
#include "samebits/scalar.hpp"
#include "samebits/types.hpp"
#include "support/conversion_case.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

void expect_what_the_oracle_says(const case_space& space, int count) {
  const rc::Gen<conversion_case> generator = cases(space);
  expect_holds("convert_code gives the oracle's code and flags", count, [&] {
    const conversion_case c = *generator;
    const converted got = convert_code(c.from, c.to, c.input, c.rule, c.random);
    const oracle::rounded_code expected = oracle::round_with_flags(
        oracle_of(c.to), oracle::decode(oracle_of(c.from), c.input), c.rule, c.random);
    require(same_code(c, got.code, expected.code));
    RC_ASSERT(got.inexact == expected.inexact);
    RC_ASSERT(got.overflow == expected.overflow);
  });
}

TEST(ConvertProperty, EveryPairOfFormats) { expect_what_the_oracle_says(whole_space(), 1000000); }

TEST(ConvertProperty, FromFp64) {
  case_space space = whole_space();
  space.from = {format_id::fp64};
  expect_what_the_oracle_says(space, 100000);
}

TEST(ConvertProperty, StochasticFromFp32AndFp64) {
  expect_what_the_oracle_says(
      {{format_id::fp32, format_id::fp64}, all_formats(), {rounding::stochastic}}, 100000);
}

TEST(ConvertProperty, IntoTheMainFormats) {
  expect_what_the_oracle_says({{format_id::fp32, format_id::fp16, format_id::bf16},
                               {format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2},
                               whole_space().modes},
                              100000);
}

/// The templates take the same path as the functions of run-time formats, but as other code.
template <format_id To, format_id From>
void expect_template_agrees() {
  const rc::Gen<conversion_case> generator = cases({{From}, {To}, whole_space().modes});
  expect_holds("convert_code<To, From> gives the oracle's code", 4096, [&] {
    conversion_case c = *generator;
    c.where = "convert_code<To, From>";
    const auto code = static_cast<storage_t<From>>(c.input);
    require(same_code(c, convert_code<To, From>(code, c.rule, c.random), expected_code(c)));
  });
}

TEST(ConvertProperty, TemplatesOfFixedFormats) {
  using enum format_id;
  expect_template_agrees<e4m3, fp32>();
  expect_template_agrees<e5m2, fp32>();
  expect_template_agrees<fp16, fp32>();
  expect_template_agrees<bf16, fp32>();
  expect_template_agrees<tf32, fp32>();
  expect_template_agrees<e8m0, fp32>();
  expect_template_agrees<e2m1, bf16>();
  expect_template_agrees<e4m3fnuz, fp16>();
  expect_template_agrees<fp32, fp64>();
  expect_template_agrees<e4m3, fp64>();
  expect_template_agrees<fp64, e5m2>();
  expect_template_agrees<fp32, e4m3>();
}

/// encode<To>(float), encode<To>(double) and decode<From> are conversions from and to C++ types.
template <format_id F>
void expect_values_agree() {
  const case_space from_float{{format_id::fp32}, {F}, whole_space().modes};
  expect_holds("encode<F>(float) and decode<F>", 4096, [&] {
    conversion_case c = *cases(from_float);
    c.where = "encode<F>(float)";
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(c.input));
    const storage_t<F> code = encode<F>(x, c.rule, c.random);
    require(same_code(c, code, expected_code(c)));

    conversion_case back{F, format_id::fp32, code};
    back.where = "decode<F>";
    require(same_code(back, std::bit_cast<std::uint32_t>(decode<F>(code)), expected_code(back)));
    back.to = format_id::fp64;
    back.where = "decode_double";
    require(
        same_code(back, std::bit_cast<std::uint64_t>(decode_double(F, code)), expected_code(back)));
  });
  const case_space from_double{{format_id::fp64}, {F}, whole_space().modes};
  expect_holds("encode<F>(double)", 4096, [&] {
    conversion_case c = *cases(from_double);
    c.where = "encode<F>(double)";
    require(same_code(c, encode<F>(std::bit_cast<double>(c.input), c.rule, c.random),
                      expected_code(c)));
  });
}

TEST(ConvertProperty, EncodeAndDecodeOfCppTypes) {
  expect_values_agree<format_id::fp16>();
  expect_values_agree<format_id::bf16>();
  expect_values_agree<format_id::e4m3>();
  expect_values_agree<format_id::e5m2>();
  expect_values_agree<format_id::tf32>();
  expect_values_agree<format_id::e2m1>();
}

/// The value types round to nearest even, once, from whatever they are made of.
template <format_id F>
void expect_value_type_agrees() {
  expect_holds("float_value<F> from float, double and other value types", 4096, [] {
    conversion_case c{format_id::fp32, F, *codes(format_id::fp32, F)};
    c.where = "float_value<F>(float)";
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(c.input));
    require(same_code(c, float_value<F>(x).bits(), expected_code(c)));
    c = {format_id::fp64, F, *codes(format_id::fp64, F)};
    c.where = "float_value<F>(double)";
    require(same_code(c, float_value<F>(std::bit_cast<double>(c.input)).bits(), expected_code(c)));
    constexpr format_id other = F == format_id::bf16 ? format_id::fp16 : format_id::bf16;
    c = {other, F, *codes(other, F)};
    c.where = "float_value<F>(other value type)";
    const auto y = float_value<other>::from_bits(static_cast<storage_t<other>>(c.input));
    require(same_code(c, float_value<F>(y).bits(), expected_code(c)));
  });
}

TEST(ConvertProperty, ValueTypes) {
  expect_value_type_agrees<format_id::fp16>();
  expect_value_type_agrees<format_id::bf16>();
  expect_value_type_agrees<format_id::e4m3>();
  expect_value_type_agrees<format_id::e5m2>();
}

}  // namespace
}  // namespace samebits
