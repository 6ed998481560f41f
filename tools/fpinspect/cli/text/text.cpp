// Text formatting: implementation.
#include "fpinspect/cli/text/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

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

/// Where the pattern goes on after what stands for one byte at `at`; nothing if it is another byte.
/// A bracket that is not closed stands for itself.
std::optional<std::size_t> matched_byte(std::string_view pattern, std::size_t at, char byte) {
  if (pattern[at] == '?') return at + 1;
  const bool negated = pattern.substr(at, 2) == "[!";
  const std::size_t first = at + (negated ? 2 : 1);
  const std::size_t end = pattern[at] == '[' ? pattern.find(']', first + 1) : pattern.npos;
  if (end == pattern.npos) return pattern[at] == byte ? std::optional(at + 1) : std::nullopt;
  bool found = false;
  for (std::size_t i = first; i < end; ++i) {
    const bool range = i + 2 < end && pattern[i + 1] == '-';
    found = found || (pattern[i] <= byte && byte <= pattern[range ? i + 2 : i]);
    i += range ? 2 : 0;
  }
  return found != negated ? std::optional(end + 1) : std::nullopt;
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

std::string number_of(std::uint64_t count, std::string_view noun) {
  return cat(count, " ", noun, count == 1 ? "" : "s");
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

bool matches_glob(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last * so far
  std::size_t resume = 0;                     // where the name goes on after its text
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    const auto next = p < pattern.size() ? matched_byte(pattern, p, name[n]) : std::nullopt;
    if (next) {
      p = *next;
      ++n;
    } else if (star != std::string_view::npos) {  // the * takes one more byte
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

void add_count(std::string& list, std::uint64_t count, std::string_view what,
               std::string_view separator) {
  if (count != 0) list += cat(list.empty() ? "" : separator, count, " ", what);
}

}  // namespace fpinspect
