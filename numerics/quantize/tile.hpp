// Tile: the amax of the elements that share one scale, under the four policies for NaN and Inf; the
// scale that is made from it.
//
// The integer maximum of bit patterns does not depend on the order of the elements. A tile can
// therefore be split among lanes, threads and warps in any way.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::numerics {

/// An amax: binary32 bits with the sign cleared, NaN as 7FFFFFFF; or no_amax (-1). The type
/// is signed, so a plain maximum combines the amaxes of parts.
using tile_amax = std::int32_t;
inline constexpr tile_amax no_amax = -1;

/// The amax contribution of one element, given as binary32 bits.
SAMEBITS_INLINE constexpr tile_amax amax_contribution(nonfinite policy, std::uint32_t x) {
  const std::uint32_t m = binary32::magnitude(x);
  if (m > binary32::inf) {
    return policy == nonfinite::propagate ? static_cast<tile_amax>(binary32::nan) : no_amax;
  }
  if (m == binary32::inf && policy == nonfinite::skip_nonfinite) return no_amax;
  return static_cast<tile_amax>(m);
}

/// Combines the amaxes of two parts of a tile.
SAMEBITS_INLINE constexpr tile_amax combined(tile_amax a, tile_amax b) { return a < b ? b : a; }

/// M: the largest finite value of the codes' format, as binary32 bits. Requires a format that is a
/// subset of binary32.
SAMEBITS_INLINE constexpr std::uint32_t largest_value(const format_spec& f) {
  return decode<std::uint32_t>(f, static_cast<std::uint32_t>(max_finite(f)));
}

/// The scale of one tile as binary32 bits. A SIMD Word holds the scales of several tiles, one a
/// lane.
template <class Word>
struct tile_scales {
  Word dequantization_scale;  ///< s, the dequantization scale
  Word factor;  ///< elements are multiplied by it; under scale_rule::div they are divided by it
};
using tile_scale = tile_scales<std::uint32_t>;

}  // namespace samebits::numerics
