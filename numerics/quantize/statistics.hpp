// Statistics of a quantization: how each element is counted. Shared by all backends.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// One quantized element. Values are binary32 bits.
struct quantized_element {
  std::uint32_t x;         ///< the input element
  std::uint32_t y;         ///< the scaled element
  std::uint32_t code;      ///< its code without the sign
  std::uint32_t restored;  ///< the dequantized value
  bool overflow;           ///< the cast overflowed
};

/// Partial statistics of part of a matrix. The order of elements does not matter. Magnitudes are
/// binary32 bits.
struct quantize_counts {
  static constexpr std::uint32_t none = 0xFFFFFFFFu;
  std::uint64_t zeros = 0, nan = 0, inf = 0, underflowed = 0, saturated = 0;
  std::uint32_t amax = 0;  ///< 7FFFFFFF if an element is NaN
  /// Smallest finite non-zero magnitude; `none` until one is seen.
  std::uint32_t min_nonzero = none;

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
      if (e.code == 0 || binary32::magnitude(e.restored) == 0) ++underflowed;
      if (e.overflow || binary32::is_inf(e.y)) ++saturated;
    }
  }
  SAMEBITS_INLINE constexpr void combine(const quantize_counts& o) {
    zeros += o.zeros, nan += o.nan, inf += o.inf;
    underflowed += o.underflowed, saturated += o.saturated;
    amax = amax < o.amax ? o.amax : amax;
    min_nonzero = o.min_nonzero < min_nonzero ? o.min_nonzero : min_nonzero;
  }
};

/// Whether an element contributes x^2 and (x - restored)^2 to the sums of signal and noise. All
/// other elements contribute +0.
SAMEBITS_INLINE constexpr bool adds_squares(std::uint32_t x, std::uint32_t restored) {
  return binary32::magnitude(x) < binary32::inf && binary32::magnitude(restored) < binary32::inf;
}

}  // namespace samebits::numerics
