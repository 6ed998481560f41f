// Loads and stores codes of any width and alignment in device memory, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samebits::cuda {

/// The code of `bytes` bytes at p, little-endian; p may have any alignment.
__device__ inline std::uint64_t load_code(const std::byte* p, int bytes) {
  std::uint64_t code = 0;
  for (int i = 0; i < bytes; ++i) code |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return code;
}
/// Stores a code of `bytes` bytes at p, little-endian; p may have any alignment.
__device__ inline void store_code(std::byte* p, int bytes, std::uint64_t code) {
  for (int i = 0; i < bytes; ++i) p[i] = static_cast<std::byte>(code >> (8 * i));
}

}  // namespace samebits::cuda
