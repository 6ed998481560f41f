// Concatenates strings, characters and integers.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace samebits::tensor_file {

inline void append_text(std::string& text, std::string_view part) { text += part; }
inline void append_text(std::string& text, char one) { text += one; }
inline void append_text(std::string& text, std::integral auto number) { text += std::to_string(number); }

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string text;
  (append_text(text, parts), ...);
  return text;
}

}  // namespace samebits::tensor_file
