// Division by a size that is known when a kernel is launched.
#pragma once

#include <bit>
#include <cstdint>

namespace samebits::cuda {

/// Divides by a shift if the size is a power of two, else in 32 bits if they are enough: a division of
/// 64 bits takes over a hundred instructions.
struct divisor {
  std::uint64_t by;
  int shift;  ///< -1: no power of two

  explicit divisor(std::int64_t size)
      : by(static_cast<std::uint64_t>(size)),
        shift(std::has_single_bit(by) ? std::countr_zero(by) : -1) {}
  __device__ __forceinline__ std::uint64_t quotient(std::uint64_t n) const {
    if (shift >= 0) return n >> shift;
    if ((n | by) >> 32 != 0) return n / by;
    return static_cast<std::uint32_t>(n) / static_cast<std::uint32_t>(by);
  }
};

}  // namespace samebits::cuda
