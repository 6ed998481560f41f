// Rank sum: one element of a gradient reduction, from each rank's contribution to the result
// (docs/decisions/0019). Kernels call these functions; host code performs the equal steps on whole
// arrays.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::numerics {

/// How a rank encodes the elements that it sends.
struct communication_settings {
  format_spec communication;           ///< communication dtype: fp32, fp16, bf16, e4m3 or e5m2
  scale_rule rule = scale_rule::pow2;  ///< scale rule for e4m3 and e5m2
  samebits::rounding rounding = samebits::rounding::nearest_even;  ///< nearest_even or stochastic
};

/// Whether the communication dtype needs a scale. Otherwise the scale is {1, 1}, which changes
/// nothing.
SAMEBITS_INLINE constexpr bool has_scale(const communication_settings& settings) {
  return settings.communication.storage_bits == 8;
}
inline constexpr tile_scale no_scale = {binary32::one, binary32::one};

/// The scale of a tensor. `amax` is the largest finite magnitude on all ranks.
SAMEBITS_INLINE constexpr tile_scale shared_scale(const communication_settings& settings,
                                                  tile_amax amax) {
  scale_settings scale;
  scale.rule = settings.rule;
  scale.nonfinite = nonfinite::skip_nonfinite;
  return scale_of(settings.communication, scale, amax);
}

/// Encodes an amax as an unsigned word, so that a maximum over ranks combines it. "No element"
/// becomes 0, the smallest word.
SAMEBITS_INLINE constexpr std::uint32_t amax_to_word(tile_amax amax) {
  return static_cast<std::uint32_t>(amax + 1);
}
SAMEBITS_INLINE constexpr tile_amax amax_from_word(std::uint32_t word) {
  return static_cast<tile_amax>(word) - 1;
}

/// The code that a rank sends for its element x (binary32 bits).
/// @param dither  as for encode()
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t contribution(const communication_settings& settings,
                                                     const tile_scale& scale, std::uint32_t x,
                                                     std::uint32_t dither) {
  const std::uint32_t y = has_scale(settings) ? scaled<Arithmetic>(settings.rule, scale, x) : x;
  const cast_rule cast = {settings.rounding, overflow::ieee, nan_policy::canonical};
  return encode<std::uint32_t>(settings.communication, cast, y, dither).code;
}

/// The sum of the contributions of ranks 0 .. n-1, in this order. code(rank) is the code that the
/// rank sent.
template <class Arithmetic = by_definition, class Code>
SAMEBITS_INLINE constexpr std::uint32_t sum_in_rank_order(const communication_settings& settings,
                                                          int ranks, const Code& code) {
  std::uint32_t total = decode<std::uint32_t>(settings.communication, code(0));
  for (int rank = 1; rank < ranks; ++rank) {
    total = Arithmetic::sum(total, decode<std::uint32_t>(settings.communication, code(rank)));
  }
  return total;
}

/// The result as a code of the tensor's own format.
template <class Arithmetic = by_definition>
SAMEBITS_INLINE constexpr std::uint32_t reduced(const communication_settings& settings,
                                                const tile_scale& scale, const format_spec& own,
                                                std::uint32_t total, std::uint32_t factor) {
  const std::uint32_t t =
      has_scale(settings) ? Arithmetic::product(total, scale.dequantization_scale) : total;
  return encode<std::uint32_t>(own, cast_rule{}, Arithmetic::product(t, factor), 0).code;
}

}  // namespace samebits::numerics
