// Concatenates text, numbers, names of enumerators and shapes, for messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace samebits::detail {

inline void append_text(std::string& text, std::string_view part) { text += part; }
inline void append_text(std::string& text, char one) { text += one; }
template <class Number>
requires std::is_arithmetic_v<Number>
void append_text(std::string& text, Number number) { text += std::to_string(number); }
template <listed_enum Enum>
void append_text(std::string& text, Enum value) {
  text += name(value);
}
inline void append_text(std::string& text, format_id format) { text += name(format); }
/// "[2, 3, 4]"
inline void append_text(std::string& text, std::span<const std::int64_t> shape) {
  const char* before = "[";
  for (const std::int64_t n : shape) {
    text += before + std::to_string(n);
    before = ", ";
  }
  text += shape.empty() ? "[]" : "]";
}

/// Concatenates the parts. Other types need an append_text() in their namespace.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  (append_text(text, parts), ...);
  return text;
}

}  // namespace samebits::detail
