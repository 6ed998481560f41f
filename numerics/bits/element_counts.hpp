// Element counts: counts NaN, Inf, zeros and subnormals by their codes. Shared by all backends.
#pragma once

#include <cstdint>

#include "numerics/bits/layout.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// Counts of up to 2^32 - 1 elements of one format.
struct code_counts {
  std::uint32_t nan = 0, inf = 0, zeros = 0, subnormals = 0;

  /// Counts one element. Bits of `code` above the format's width are ignored.
  SAMEBITS_INLINE constexpr void add(const format_spec& f, std::uint32_t code) {
    const auto magnitude = code & static_cast<std::uint32_t>(magnitude_mask(f));
    const std::uint32_t min_normal = std::uint32_t{1} << f.mantissa_bits;
    const bool infinite = has_inf(f) && magnitude == inf_code(f);
    nan += magnitude > max_finite(f) && !infinite ? 1u : 0u;
    inf += infinite ? 1u : 0u;
    zeros += magnitude == 0 ? 1u : 0u;
    subnormals += magnitude != 0 && magnitude < min_normal ? 1u : 0u;
  }
};

}  // namespace samebits::numerics
