// Scales in lanes: numerics::scale_of with the processor's division, one tile a lane.
#pragma once

#include <cstdint>

#include "numerics/scale.hpp"
#include "numerics/word.hpp"
#include "samebits/format.hpp"

namespace samebits::simd {

template <class Isa>
struct lane_scales {
  typename Isa::word stored, factor;
};

/// numerics::scale_of_amax. Amaxes are positive, and a NaN is 7FFFFFFF, which the division passes
/// on.
template <class Isa>
SAMEBITS_INLINE lane_scales<Isa> scales_of_amaxes(scale_math math, typename Isa::word largest,
                                                  typename Isa::word a) {
  namespace binary32 = numerics::binary32;
  using word = typename Isa::word;
  const word one = binary32::one;
  if (math == scale_math::te) {
    const word quotient = Isa::divide(largest, a);
    const word factor =
        select(quotient == word(binary32::inf), word(binary32::max_finite), quotient);
    return {Isa::divide(one, factor), factor};
  }
  const word t = Isa::divide(a, largest);
  if (math == scale_math::pow2) {
    const word up = select((t & word(0x007FFFFFu)) == word(0u), word(0u), word(1u));
    const word e = min_word(max_word((t >> 23u) + up, word(1u)), word(254u));
    const word reciprocal = (word(254u) - e) << 23u;
    return {e << 23u, select(e == word(254u), word(binary32::min_normal >> 1), reciprocal)};
  }
  const word s = max_word(t, word(binary32::min_normal));
  return {s, math == scale_math::div ? s : Isa::divide(one, s)};
}

/// numerics::scale_of; amaxes as in tile_amax.
template <class Isa>
SAMEBITS_INLINE lane_scales<Isa> scales_of(const format_spec& to, const numerics::scale_rule& rule,
                                           typename Isa::word amax) {
  namespace binary32 = numerics::binary32;
  using word = typename Isa::word;
  const word one = binary32::one;
  auto unit = amax == word(static_cast<std::uint32_t>(numerics::nothing_counted));
  if (rule.on_nonfinite == nonfinite::te) unit = unit | (amax == word(binary32::inf));
  const word bounded = min_word(max_word(amax, word(rule.eps)), word(rule.upper_bound));
  const word a = select(amax > word(binary32::inf), amax, bounded);
  unit = unit | (a == word(0u));
  const lane_scales<Isa> s =
      scales_of_amaxes<Isa>(rule.math, word(numerics::largest_value(to)), select(unit, one, a));
  return {select(unit, one, s.stored), select(unit, one, s.factor)};
}

}  // namespace samebits::simd
