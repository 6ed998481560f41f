// Statistics of a quantization: what each element counts as. The same for every backend.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// What happened to one element; values are binary32 bits.
struct quantized_element {
  std::uint32_t x;         ///< the element
  std::uint32_t y;         ///< once scaled
  std::uint32_t code;      ///< of 8 bits
  std::uint32_t restored;  ///< what its code stands for: RN(value * s)
  bool overflow;           ///< of the cast
};

/// Counts of part of a matrix, in any order; magnitudes are binary32 bits.
struct quantize_counts {
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  std::uint64_t zeros = 0, nan = 0, inf = 0, underflowed = 0, saturated = 0;
  std::uint32_t amax = 0;            ///< NaN: 7FFFFFFF
  std::uint32_t min_nonzero = none;  ///< of finite elements; none as long as there is none

  SAMEBITS_INLINE constexpr void add(const quantized_element& e) {
    const std::uint32_t magnitude = binary32::magnitude(e.x);
    const std::uint32_t own = binary32::amax_bits(e.x);
    amax = amax < own ? own : amax;
    if (magnitude > binary32::inf) {
      ++nan;
    } else if (magnitude == binary32::inf) {
      ++inf;
    } else if (magnitude == 0) {
      ++zeros;
    } else {
      min_nonzero = magnitude < min_nonzero ? magnitude : min_nonzero;
      if ((e.code & 0x7Fu) == 0) ++underflowed;
      if (e.overflow || binary32::is_inf(e.y)) ++saturated;
    }
  }
  SAMEBITS_INLINE constexpr void join(const quantize_counts& o) {
    zeros += o.zeros, nan += o.nan, inf += o.inf;
    underflowed += o.underflowed, saturated += o.saturated;
    amax = amax < o.amax ? o.amax : amax;
    min_nonzero = o.min_nonzero < min_nonzero ? o.min_nonzero : min_nonzero;
  }
};

/// Whether an element adds x^2 and (x - restored)^2 to the sums of signal and noise; if not, +0.
SAMEBITS_INLINE constexpr bool adds_squares(std::uint32_t x, std::uint32_t restored) {
  return binary32::magnitude(x) < binary32::inf && binary32::magnitude(restored) < binary32::inf;
}

}  // namespace samebits::numerics
