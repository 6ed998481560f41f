// Tests of the matchers: they accept only equal bits and show the first difference.
#include "samebits/testkit/matchers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "samebits/types.hpp"

namespace samebits::testkit {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string explanation(const code_matcher& matcher, const std::vector<std::uint8_t>& got) {
  std::ostringstream text;
  matcher.MatchAndExplain(got, &text);
  return text.str();
}

TEST(SameBits, MatchesEqualCodesOfAnyElementType) {
  const std::vector<std::uint8_t> codes{0x7E, 0x00, 0x80};
  const std::vector<e4m3> values{e4m3::from_bits(0x7E), e4m3::from_bits(0), e4m3::from_bits(0x80)};
  EXPECT_THAT(codes, same_bits(codes, format_id::e4m3));
  EXPECT_THAT(values, same_bits(codes, format_id::e4m3));
  EXPECT_TRUE(is_same_bits(values, codes, format_id::e4m3));
}

TEST(SameBits, TellsZerosApartAndCountsWhatDiffers) {
  const std::vector<std::uint8_t> expected{0x7E, 0x00, 0x80};
  const std::vector<std::uint8_t> got{0x7E, 0x80, 0x00};
  EXPECT_THAT(got, Not(same_bits(expected, format_id::e4m3)));
  EXPECT_FALSE(is_same_bits(got, expected, format_id::e4m3));
  const std::string text = explanation(same_bits(expected, format_id::e4m3), got);
  EXPECT_THAT(text, HasSubstr("2 of 3 elements differ, the first is element 1"));
  EXPECT_THAT(text, HasSubstr("got      0x80 = 1|0000|000 = -0x0p+0 = -0"));
  EXPECT_THAT(text, HasSubstr("expected 0x00 = 0|0000|000"));
}

TEST(SameBits, ComparesSizesAndElementSizes) {
  const std::vector<std::uint8_t> two{1, 2};
  const std::vector<std::uint8_t> three{1, 2, 3};
  EXPECT_THAT(explanation(same_bits(three, format_id::e4m3), two),
              HasSubstr("it has 2 elements, expected 3"));
  EXPECT_THAT(explanation(same_bits(two, format_id::bf16), two), HasSubstr("elements of 1 bytes"));
}

TEST(SameBits, AFailedAssertionShowsIt) {
  static const std::vector<std::uint8_t> got{0x38};
  static const std::vector<std::uint8_t> expected{0x39};
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(got, same_bits(expected, format_id::e4m3)),
                          "expected 0x39 = 0|0111|001 = 0x1.2p+0 = 1.125");
}

TEST(ConvertedFrom, ComparesWithTheOracleAndSaysHowToRepeat) {
  const std::vector<float> inputs{464.0f, 1.0625f};
  const conversion_under_test conversion{.from = format_id::fp32, .to = format_id::e4m3};
  EXPECT_THAT((std::vector<std::uint8_t>{0x7E, 0x38}), converted_from(inputs, conversion));
  const std::string text =
      explanation(converted_from(inputs, conversion), {0x7E, 0x39});  // a tie, rounded away
  EXPECT_THAT(text, HasSubstr("1 of 2 elements differ, the first is element 1"));
  EXPECT_THAT(text, HasSubstr("input    0x3F880000"));
  EXPECT_THAT(text, HasSubstr("repeat with: fpinspect cast --to e4m3"));
  EXPECT_THAT(explanation(converted_from(inputs, conversion), {0x7E}), HasSubstr("expected 2"));
}

TEST(ConvertedFrom, StochasticElementsHaveTheirIndex) {
  // Contract §3, seed 1: R is e3e80670, e50a0ebc, ac08141b at indices 0, 1, 4 with K = 32. An
  // element with v = 1/4 rounds up iff R >= c0000000; 1.0 is exact and stays.
  const std::vector<float> inputs{1.03125f, 1.03125f, 1.0f, 1.0f, 1.03125f};
  const conversion_under_test conversion{
      format_id::fp32, format_id::e4m3, {rounding::stochastic}, {.seed = 1}};
  EXPECT_THAT((std::vector<std::uint8_t>{0x39, 0x39, 0x38, 0x38, 0x38}),
              converted_from(inputs, conversion));
  EXPECT_THAT((std::vector<std::uint8_t>{0x39, 0x39, 0x38, 0x38, 0x39}),
              Not(converted_from(inputs, conversion)));
}

}  // namespace
}  // namespace samebits::testkit
