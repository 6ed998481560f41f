// Strict UTF-8 decoding: no overlong forms, no surrogates, nothing above U+10FFFF.
//
// Source: Unicode 15, table 3-7 (well-formed byte sequences).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace samebits::tensor_file {

/// One decoded character; length 0 means that no well-formed sequence starts at the position.
struct utf8_character {
  std::size_t length = 0;  ///< bytes, 1 to 4
  std::uint32_t value = 0;
};

/// The character that starts at text[at]. Requires at < text.size().
constexpr utf8_character decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t length = lead < 0xc0   ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf8 ? 4
                                           : 0;
  if (length == 0 || text.size() - at < length) return {};
  std::uint32_t value = lead & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr std::uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest[length] || value > 0x10ffff || surrogate) return {};
  return {length, value};
}

/// The position of the first byte that is not part of a well-formed character, or npos.
constexpr std::size_t find_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_utf8(text, at).length;
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace samebits::tensor_file
