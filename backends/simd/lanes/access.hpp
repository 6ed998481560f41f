// Access: loads and stores codes between memory and SIMD lanes. Widths are known at compile time or
// at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "samebits/core/config.hpp"

namespace samebits::simd {

/// A width in bits known at compile time. An int in its place is a run-time width.
template <int Bits>
using fixed_width = std::integral_constant<int, Bits>;

template <class Width>
inline constexpr bool is_fixed_width = !std::is_same_v<Width, int>;

/// Loads one vector of codes of `width` bits each from memory of any alignment; store() is the
/// inverse.
template <class Isa, int Bits>
SAMEBITS_INLINE typename Isa::word load(fixed_width<Bits>, const std::byte* p) {
  return Isa::template load<Bits>(p);
}
template <class Isa>
SAMEBITS_INLINE typename Isa::word load(int width, const std::byte* p) {
  if (width == 8) return Isa::template load<8>(p);
  if (width == 16) return Isa::template load<16>(p);
  return Isa::template load<32>(p);
}
template <class Isa, int Bits>
SAMEBITS_INLINE void store(fixed_width<Bits>, std::byte* p, typename Isa::word x) {
  Isa::template store<Bits>(p, x);
}
template <class Isa>
SAMEBITS_INLINE void store(int width, std::byte* p, typename Isa::word x) {
  if (width == 8) return Isa::template store<8>(p, x);
  if (width == 16) return Isa::template store<16>(p, x);
  Isa::template store<32>(p, x);
}

/// Loads and stores one vector of words.
template <class Isa>
SAMEBITS_INLINE typename Isa::word load(const std::uint32_t* words) {
  return Isa::template load<32>(reinterpret_cast<const std::byte*>(words));
}
template <class Isa>
SAMEBITS_INLINE void store(std::uint32_t* words, typename Isa::word x) {
  Isa::template store<32>(reinterpret_cast<std::byte*>(words), x);
}

/// Copies codes between arrays with different strides, given in bytes.
template <class Isa>
void copy_codes(std::byte* to, std::int64_t to_step, const std::byte* from, std::int64_t from_step,
                std::int64_t bytes, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    switch (bytes) {
      case 1: __builtin_memcpy(to + i * to_step, from + i * from_step, 1); break;
      case 2: __builtin_memcpy(to + i * to_step, from + i * from_step, 2); break;
      default: __builtin_memcpy(to + i * to_step, from + i * from_step, 4); break;
    }
  }
}

/// Streaming: how a large array passes through the caches. Stores bypass the caches, and operands
/// are prefetched one page ahead, because hardware prefetch ends at each 4 KiB page.
namespace streaming {
inline constexpr std::int64_t page_bytes = 4096;
inline constexpr std::int64_t prefetch_bytes = page_bytes;
/// From this many bytes on, read and written together, results bypass the caches. Smaller results
/// may still be in the caches when they are used next.
inline constexpr std::int64_t min_bytes = std::int64_t{32} << 20;
}  // namespace streaming

}  // namespace samebits::simd
