// Codes of a comparison: loads them from memory and formats them as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "samebits/core/format.hpp"

namespace samebits::backends::verification {

/// Loads a code. Little-endian, like every supported machine.
inline std::uint64_t load(const std::byte* at, std::size_t bytes) {
  std::uint64_t code = 0;
  std::memcpy(&code, at, bytes);
  return code;
}

/// "0x3c00", with as many digits as codes of the format have.
inline std::string hex(format_id format, std::uint64_t code) {
  char text[19];
  const int digits = spec_of(format).storage_bits / 4;
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(code));
  return text;
}

}  // namespace samebits::backends::verification
