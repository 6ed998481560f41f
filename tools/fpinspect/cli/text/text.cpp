// Text formatting: implementation.
#include "fpinspect/cli/text/text.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace fpinspect {
namespace {

/// std::to_chars; `notation` are its arguments after the number. The buffer holds the fixed
/// notation of any number.
template <class... Notation>
std::string number_text(double number, Notation... notation) {
  std::array<char, 400> digits{};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), number, notation...).ptr;
  return {digits.data(), end};
}

std::string fill(std::string_view text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ');
}

}  // namespace

std::string left(std::string_view text, std::size_t width) {
  return std::string(text) + fill(text, width);
}

std::string right(std::string_view text, std::size_t width) {
  return fill(text, width) + std::string(text);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}

std::string fixed(double number, int decimals) {
  return number_text(number, std::chars_format::fixed, decimals);
}

std::string scientific(double number, int decimals) {
  return number_text(number, std::chars_format::scientific, decimals);
}

std::string general(double number, int digits) {
  return number_text(number, std::chars_format::general, digits);
}

std::string shortest(double number) { return number_text(number); }

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  if (part == 0) return "0 %";
  if (part == whole) return "100 %";
  const double share = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (share < 0.01) return "< 0.01 %";
  if (share > 99.99) return "> 99.99 %";
  return cat(fixed(share, 2), " %");
}

std::string wrapped(std::string_view text, std::string_view indent, std::size_t width) {
  std::string result;
  std::string line(text);
  while (line.size() > width) {
    const std::size_t start = line.find_first_not_of(' ');
    std::size_t space = line.rfind(' ', width);
    if (space == std::string::npos || space < start) space = line.find(' ', start);
    if (space == std::string::npos) break;
    result += cat(line.substr(0, space), "\n");
    line = cat(indent, line.substr(space + 1));
  }
  return result + line;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  // Only for POSIX are these characters special, some of them only in brackets.
  constexpr std::string_view posix = "\\^:=.";
  std::string escaped;
  for (const char c : pattern) {
    if (posix.find(c) != posix.npos) escaped += '\\';
    escaped += c;
  }
  std::string whole(text);
  std::ranges::replace(whole, '\0', '\1');  // a name may hold NUL, which no pattern does
  return ::fnmatch(escaped.c_str(), whole.c_str(), 0) == 0;
}

}  // namespace fpinspect
