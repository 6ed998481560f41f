// Patterns of tensor names: implementation.
#include "fpinspect/tensors/source/glob.hpp"

namespace fpinspect {
namespace {

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

}  // namespace

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

}  // namespace fpinspect
