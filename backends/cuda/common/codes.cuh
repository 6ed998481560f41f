// Loads and stores codes of any width in device memory: of any alignment, byte by byte; or aligned.
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

/// The code of 1, 2 or 4 bytes at p, which is aligned to them.
__device__ __forceinline__ std::uint32_t load_aligned(const std::byte* p, int bytes) {
  if (bytes == 4) return *reinterpret_cast<const std::uint32_t*>(p);
  if (bytes == 2) return *reinterpret_cast<const std::uint16_t*>(p);
  return *reinterpret_cast<const std::uint8_t*>(p);
}
/// Stores a code of 1, 2 or 4 bytes at p, which is aligned to them.
__device__ __forceinline__ void store_aligned(std::byte* p, int bytes, std::uint32_t code) {
  if (bytes == 4) {
    *reinterpret_cast<std::uint32_t*>(p) = code;
  } else if (bytes == 2) {
    *reinterpret_cast<std::uint16_t*>(p) = static_cast<std::uint16_t>(code);
  } else {
    *reinterpret_cast<std::uint8_t*>(p) = static_cast<std::uint8_t>(code);
  }
}

}  // namespace samebits::cuda
