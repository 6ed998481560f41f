// Text formatting: numbers, columns and concatenation.
//
// Replaces a formatting library, which would take longer to compile than this whole tool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/cat.hpp"

namespace fpinspect {

using samebits::detail::cat;

/// Pads `text` with spaces to `width` characters. Each character of `text` must be one byte.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

/// The text without blanks at its end.
inline std::string without_end_blanks(std::string text) {
  return text.erase(text.find_last_not_of(' ') + 1);
}

/// The text with ASCII letters in lower or upper case.
std::string lower(std::string_view text);
std::string upper(std::string_view text);

/// A number with `decimals` digits after the point: 12.3 (fixed) and 1.23e+01 (scientific).
std::string fixed(double number, int decimals);
std::string scientific(double number, int decimals);
/// A number with at most `digits` significant digits: 12.3, 1.23e-09.
std::string general(double number, int digits);
/// The fewest digits that read back as the same binary64 number.
std::string shortest(double number);

/// A percentage: "1.50 %". Rounds to 0 or 100 only if the share is exactly 0 or 100; "-" if `whole`
/// is 0.
std::string percent(std::uint64_t part, std::uint64_t whole);

/// The text in lines of at most `width` characters, broken at spaces; all but the first begin with
/// `indent`. Words are not broken, and blanks at the start of the text are kept.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t width);

/// "1 value", "2 values": a count and its noun, whose plural ends in s.
inline std::string number_of(std::uint64_t count, std::string_view noun) {
  return cat(count, " ", noun, count == 1 ? "" : "s");
}

/// Appends a count and what it counts to a list: "3 NaN, 1 Inf". Counts of 0 are left out.
inline void add_count(std::string& list, std::uint64_t count, std::string_view what,
                      std::string_view separator = ", ") {
  if (count != 0) list += cat(list.empty() ? "" : separator, count, " ", what);
}

/// "a, b, c": the texts of all elements.
template <class Range, class Text = std::identity>
std::string joined(const Range& all, Text text = {}, std::string_view separator = ", ") {
  std::string result;
  bool first = true;
  for (const auto& one : all) {
    if (!first) result += separator;
    first = false;
    result += cat(text(one));
  }
  return result;
}

/// The parts between the separators: one for a text without any.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Whether the whole text matches a pattern, as in Python's fnmatch: * stands for any text, ? for one
/// byte, [a-cx] for one of these bytes and [!a-cx] for any other one.
bool matches_glob(std::string_view pattern, std::string_view text);

/// "[64, 576]"
inline std::string shape_text(std::span<const std::uint64_t> shape) {
  return cat("[", joined(shape), "]");
}

}  // namespace fpinspect
