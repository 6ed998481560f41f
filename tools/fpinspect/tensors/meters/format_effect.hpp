// The effect of one format on the elements of a tensor.
#pragma once

#include <cstdint>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// The effect of one format on the elements. The members count elements unless they are sums.
struct format_effect {
  samebits::format_id format = samebits::format_id::fp32;
  std::uint64_t underflow = 0;  ///< finite and non-zero, becomes a zero
  std::uint64_t subnormal = 0;  ///< finite and non-zero, becomes a subnormal
  std::uint64_t overflow = 0;   ///< finite, rounds to a value beyond max finite
  std::uint64_t to_inf = 0;     ///< finite, becomes an infinity
  std::uint64_t to_nan = 0;     ///< a number or an infinity, becomes NaN
  std::uint64_t to_max = 0;     ///< NaN or an infinity, becomes finite
  std::uint64_t changed = 0;    ///< becomes a different number; NaN to NaN is no change
  double signal = 0.0;  ///< sum of RN64(x * x); pairs that are not finite on both sides add +0
  double noise = 0.0;   ///< sum of RN64(d * d), d = RN64(x - rounded x), over the same pairs
  /// signal and noise for a conversion with overflow `saturate`.
  double saturated_signal = 0.0;
  double saturated_noise = 0.0;

  /// Number of elements that lost their value.
  [[nodiscard]] std::uint64_t destroyed() const { return underflow + to_inf + to_nan + to_max; }
};

}  // namespace fpinspect
