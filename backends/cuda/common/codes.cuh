// Codes of any width and alignment in device memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samebits::cuda {

/// A code of `bytes` bytes, little-endian, of any alignment.
__device__ inline std::uint64_t load_code(const std::byte* p, int bytes) {
  std::uint64_t code = 0;
  for (int i = 0; i < bytes; ++i) code |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return code;
}
__device__ inline void store_code(std::byte* p, int bytes, std::uint64_t code) {
  for (int i = 0; i < bytes; ++i) p[i] = static_cast<std::byte>(code >> (8 * i));
}

}  // namespace samebits::cuda
