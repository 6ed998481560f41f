// Matchers and predicates for arrays of codes. A failure shows fields, values and a command that
// repeats the case.
//
//   EXPECT_THAT(codes, same_bits(expected, format_id::e4m3));                 // needs gmock
//   EXPECT_THAT(codes, converted_from(inputs, {.to = format_id::e4m3}));      // needs gmock
//   EXPECT_TRUE(is_same_bits(codes, expected, format_id::e4m3));              // needs only gtest
//
// Arrays are contiguous ranges of any trivially copyable type of the format's storage size:
// std::uint8_t and float as well as samebits::e4m3.
#pragma once

#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <ostream>
#include <ranges>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/testkit/conversion.hpp"

namespace samebits::testkit {

/// A contiguous range whose elements can be read as codes.
template <class Range>
concept code_range = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::is_trivially_copyable_v<std::ranges::range_value_t<Range>>;

/// The codes of a range, and the size of a range element in bytes.
struct code_array {
  std::vector<std::uint64_t> codes;
  std::size_t element_bytes = 0;
};

template <code_range Range>
code_array codes_in(const Range& range) {
  using element = std::ranges::range_value_t<Range>;
  static_assert(sizeof(element) <= sizeof(std::uint64_t));
  code_array result{{}, sizeof(element)};
  for (const element& e : range) {
    std::uint64_t code = 0;
    std::memcpy(&code, &e, sizeof(element));
    result.codes.push_back(code);
  }
  return result;
}

/// Compares arrays of codes of a format.
///
/// @returns an empty text if both arrays are equal; else the number of differences and the fields
///   of the first. Element sizes other than the format's are a difference.
std::string difference(const code_array& got, const code_array& expected, format_id format);

/// Compares codes with the oracle's conversion of `inputs`.
///
/// @returns an empty text if every got[i] is the code of inputs[i]; else the number of differences
///   and, for the first, the fields of input, result and expected result, and a command that
///   repeats the case
std::string conversion_difference(const code_array& got, const code_array& inputs,
                                  const conversion_under_test& conversion);

/// A GoogleTest matcher of code ranges, returned by same_bits() and converted_from().
class code_matcher {
 public:
  using is_gtest_matcher = void;
  using explanation = std::function<std::string(const code_array& got)>;

  code_matcher(std::string description, explanation explain)
      : description_(std::move(description)), explain_(std::move(explain)) {}

  template <code_range Range>
  bool MatchAndExplain(const Range& got, std::ostream* listener) const {
    const std::string text = explain_(codes_in(got));
    if (listener != nullptr) *listener << text;
    return text.empty();
  }
  void DescribeTo(std::ostream* out) const { *out << "is " << description_; }
  void DescribeNegationTo(std::ostream* out) const { *out << "is not " << description_; }

 private:
  std::string description_;
  explanation explain_;
};

/// Matches a range with the codes of `expected`, in order, bit for bit.
template <code_range Range>
code_matcher same_bits(const Range& expected, format_id format) {
  return {"the same " + std::string(name(format)) + " bits",
          [expected = codes_in(expected), format](const code_array& got) {
            return difference(got, expected, format);
          }};
}

/// Matches a range with the codes that `inputs` convert to; the oracle computes them.
template <code_range Range>
code_matcher converted_from(const Range& inputs, const conversion_under_test& conversion) {
  return {"the codes of these inputs in " + std::string(name(conversion.to)),
          [inputs = codes_in(inputs), conversion](const code_array& got) {
            return conversion_difference(got, inputs, conversion);
          }};
}

/// The predicate of same_bits(), for tests without gmock.
template <code_range Got, code_range Expected>
::testing::AssertionResult is_same_bits(const Got& got, const Expected& expected,
                                        format_id format) {
  const std::string text = difference(codes_in(got), codes_in(expected), format);
  if (text.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << text;
}

}  // namespace samebits::testkit
