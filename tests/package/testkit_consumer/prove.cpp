// An outside user's tests: each header of the test kit, used once.
#include "samebits/testkit/oracle.hpp"
// The order matters: the header above is compiled without help from others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "samebits/testkit/conformance.hpp"
#include "samebits/testkit/conversion.hpp"
#include "samebits/testkit/generators.hpp"
#include "samebits/testkit/matchers.hpp"
#include "samebits/testkit/quantize.hpp"

namespace {

using namespace samebits::testkit;
using samebits::cast_rule;
using samebits::const_matrix_view;
using samebits::convert_options;
using samebits::format_id;
using samebits::matrix_view;

void to_bf16(std::span<const float> in, std::span<std::uint16_t> out) {
  std::transform(in.begin(), in.end(), out.begin(),
                 [](float x) { return samebits::encode<format_id::bf16>(x); });
}

void to_bf16_by_truncation(std::span<const float> in, std::span<std::uint16_t> out) {
  std::transform(in.begin(), in.end(), out.begin(), [](float x) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
  });
}

TEST(Outside, CheckConversion) {
  const conversion_under_test conversion{.from = format_id::fp32, .to = format_id::bf16};
  const auto right = check_conversion(conversion, to_bf16, {.batches = 4});
  EXPECT_TRUE(right) << right.message();
  const auto wrong = check_conversion(conversion, to_bf16_by_truncation);
  EXPECT_FALSE(wrong);
  EXPECT_NE(wrong.message().find("repeat with: fpinspect cast --to bf16"), std::string::npos);
}

TEST(Outside, CheckQuantize) {
  const auto nothing = [](std::span<const float>, std::int64_t, std::int64_t,
                          std::span<std::uint8_t>, std::span<float>) {};
  const auto wrong = check_quantize("TE_CURRENT", nothing);
  ASSERT_TRUE(wrong.failure());
  EXPECT_NE(wrong.message().find("looks like: "), std::string::npos);
}

TEST(Outside, Matchers) {
  const std::vector<float> inputs{1.0f, 464.0f};
  const std::vector<std::uint8_t> codes{0x38, 0x7E};
  EXPECT_THAT(codes, same_bits(std::vector<std::uint8_t>{0x38, 0x7E}, format_id::e4m3));
  EXPECT_THAT(codes, converted_from(inputs, {.from = format_id::fp32, .to = format_id::e4m3}));
}

TEST(Outside, GeneratorsAndOracle) {
  expect_holds("bf16 to e4m3", 1000, [] {
    const std::uint16_t code = *codes<format_id::bf16>(format_id::e4m3);
    const cast_rule rule = *rules();
    if (rule.rounding == samebits::rounding::stochastic) return;
    const conversion_case c{format_id::bf16, format_id::e4m3, code, rule};
    const auto got = samebits::convert_code<format_id::e4m3, format_id::bf16>(code, rule);
    require(same_code(c, got, expected_code(c)));
  });
}

/// An executor of one's own.
void my_convert(const const_matrix_view& in, const matrix_view& out, const convert_options& options,
                int threads) {
  samebits::convert(in, out, options, {"reference", threads});
}

INSTANTIATE_TEST_SUITE_P(Mine, ConvertSuite,
                         ::testing::Values(convert_target{"mine", true, my_convert}),
                         name_of_target);

}  // namespace
