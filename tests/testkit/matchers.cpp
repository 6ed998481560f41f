// Texts that describe the differences of arrays of codes.
#include "samebits/testkit/matchers.hpp"

#include "samebits/scalar.hpp"
#include "samebits/testkit/oracle.hpp"

namespace samebits::testkit {
namespace {

std::string wrong_element_size(const char* what, const code_array& array, format_id format) {
  if (array.element_bytes == static_cast<std::size_t>(storage_bytes(format))) return {};
  return std::string(what) + " has elements of " + std::to_string(array.element_bytes) +
         " bytes, expected " + std::to_string(storage_bytes(format)) + " of " +
         std::string(name(format));
}

std::string wrong_size(const code_array& got, const code_array& expected) {
  if (got.codes.size() == expected.codes.size()) return {};
  return "it has " + std::to_string(got.codes.size()) + " elements, expected " +
         std::to_string(expected.codes.size());
}

std::string count_text(std::size_t differing, std::size_t first, std::size_t size) {
  return std::to_string(differing) + " of " + std::to_string(size) +
         " elements differ, the first is element " + std::to_string(first);
}

support::conversion_case case_of(const conversion_under_test& c, std::uint64_t code,
                                 std::uint64_t position) {
  support::conversion_case one{c.from, c.to, code, c.rule};
  if (c.rule.rounding == rounding::stochastic) {
    const std::uint64_t index = c.random.offset + position;
    one.origin = {{c.random.seed, c.random.stream, index}};
    one.random = {oracle::random_word(c.random.seed, c.random.stream, index, c.random.bits),
                  c.random.bits};
  }
  one.where = "the code under test";
  return one;
}

}  // namespace

std::uint64_t oracle_code(const conversion_under_test& conversion, std::uint64_t code,
                          std::uint64_t position) {
  return support::expected_code(case_of(conversion, code, position));
}

std::string difference(const code_array& got, const code_array& expected, format_id format) {
  for (std::string text :
       {wrong_element_size("it", got, format),
        wrong_element_size("what was expected", expected, format), wrong_size(got, expected)}) {
    if (!text.empty()) return text;
  }
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = got.codes.size(); i-- > 0;) {
    if (got.codes[i] == expected.codes[i]) continue;
    ++differing;
    first = i;
  }
  if (differing == 0) return {};
  return count_text(differing, first, got.codes.size()) + ":\n  got      " +
         support::code_text(format, got.codes[first]) + "\n  expected " +
         support::code_text(format, expected.codes[first]);
}

std::string conversion_difference(const code_array& got, const code_array& inputs,
                                  const conversion_under_test& conversion) {
  for (std::string text :
       {wrong_element_size("it", got, conversion.to),
        wrong_element_size("the input", inputs, conversion.from), wrong_size(got, inputs)}) {
    if (!text.empty()) return text;
  }
  std::size_t differing = 0;
  std::size_t first = 0;
  std::string text;
  for (std::size_t i = got.codes.size(); i-- > 0;) {
    const support::conversion_case c = case_of(conversion, inputs.codes[i], i);
    const std::uint64_t expected = support::expected_code(c);
    const bool any_nan = conversion.nan == nan_result::any && is_nan(conversion.to, expected);
    if (got.codes[i] == expected || (any_nan && is_nan(conversion.to, got.codes[i]))) continue;
    ++differing;
    first = i;
    text = support::same_code(c, got.codes[i], expected).message();
  }
  if (differing == 0) return {};
  return count_text(differing, first, got.codes.size()) + ":\n" + text;
}

}  // namespace samebits::testkit
