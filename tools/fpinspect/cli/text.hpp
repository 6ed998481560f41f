// Pieces of text: numbers, columns, and their concatenation.
//
// In place of a formatting library, which would take longer to compile than all of this tool.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fpinspect {

/// Filled up with spaces to a number of characters, of which `text` must have one per byte.
std::string left(std::string_view text, std::size_t width);
std::string right(std::string_view text, std::size_t width);

/// With that many digits after the point: 12.3 and 1.23e+01.
std::string fixed(double number, int decimals);
std::string scientific(double number, int decimals);
/// With at most that many digits: 12.3, 1.23e-09.
std::string general(double number, int digits);
/// As few digits as read back as the same binary64.
std::string shortest(double number);

/// "64, 256"
std::string comma_separated(std::span<const std::uint64_t> numbers);

inline void append(std::string& text, std::string_view piece) { text += piece; }
inline void append(std::string& text, std::integral auto number) { text += std::to_string(number); }

/// Strings and integers, one after the other.
template <class... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string text;
  (append(text, pieces), ...);
  return text;
}

}  // namespace fpinspect
