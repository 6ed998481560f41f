// Codes in memory, and their text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "samebits/view.hpp"

namespace samebits::backends::verification {

/// Loads a code. Little-endian, like every supported machine.
inline std::uint64_t load(const std::byte* at, std::size_t bytes) {
  std::uint64_t code = 0;
  std::memcpy(&code, at, bytes);
  return code;
}

/// Bytes from the first element of a view to an element.
inline std::ptrdiff_t byte_offset(const const_matrix_view& v, std::int64_t row, std::int64_t col) {
  return (row * v.row_stride + col * v.col_stride) * storage_bytes(v.format);
}

/// "0x3c00", with all digits of a code of so many bytes.
inline std::string hex(std::uint64_t code, std::size_t bytes) {
  char text[19];
  std::snprintf(text, sizeof text, "0x%0*llx", static_cast<int>(2 * bytes),
                static_cast<unsigned long long>(code));
  return text;
}

}  // namespace samebits::backends::verification
