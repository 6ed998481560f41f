// Delayed scaling: the scale of a tensor is computed from the amaxes of earlier steps, which a
// state keeps.
//
//   std::vector<float> history(1024, 0.0f);
//   samebits::delayed_scale state;
//   // each step:
//   options.inverse_scales = samebits::view_of(&state.inverse_scale, 1, 1);   // options.tile is {0, 0}
//   samebits::quantize(in, outputs, options);
//   samebits::observe(history, outputs.statistics->amax);
//   state = samebits::updated(state, history, {});
//
// Every function is constexpr and computes in integers (contract §7). With several processes, first
// replace history[0] on each by the maximum over all of them, then update.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/table.hpp"

namespace samebits {

/// The amax that decides: the maximum of the history, or the most recent one.
enum class history_choice : std::uint8_t { maximum, most_recent };
template <>
inline constexpr auto table_of<history_choice> =
    enum_table<history_choice::most_recent>({"maximum", "most_recent"});

/// An update whose history[0] is 0, as after a tensor of zeros. skip: the update does nothing, like
/// TransformerEngine's fused update. roll: the update runs as for any other amax, like
/// TransformerEngine's unfused update.
enum class zero_step : std::uint8_t { skip, roll };
template <>
inline constexpr auto table_of<zero_step> = enum_table<zero_step::roll>({"skip", "roll"});

/// Settings of delayed scaling.
struct delayed_settings {
  format_id to = format_id::e4m3;  ///< format of the codes: e4m3 or e5m2
  int margin = 0;                  ///< in -64 .. 64: M is multiplied by 2^-margin
  history_choice choice = history_choice::maximum;
  samebits::zero_step zero_step = zero_step::skip;
};

/// Scales of a tensor: the inverse scale S and the dequantization scale s = RN(1 / S).
struct delayed_scale {
  float inverse_scale = 1.0f;
  float scale = 1.0f;

  friend constexpr bool operator==(const delayed_scale& a, const delayed_scale& b) {
    return std::bit_cast<std::uint32_t>(a.inverse_scale) ==
               std::bit_cast<std::uint32_t>(b.inverse_scale) &&
           std::bit_cast<std::uint32_t>(a.scale) == std::bit_cast<std::uint32_t>(b.scale);
  }
};

namespace detail {

/// Returns the scales for an amax that is finite and above 0.
constexpr delayed_scale scale_of_amax(const delayed_settings& settings, std::uint32_t amax) {
  namespace binary32 = numerics::binary32;
  const int margin = settings.margin < -64 ? -64 : settings.margin > 64 ? 64 : settings.margin;
  const std::uint32_t power = static_cast<std::uint32_t>(127 - margin) << 23;
  const std::uint32_t largest =
      binary32::multiply(numerics::largest_value(spec_of(settings.to)), power);  // exact
  const std::uint32_t quotient = binary32::divide(largest, amax);
  const std::uint32_t inverse_scale = quotient == binary32::inf ? binary32::max_finite : quotient;
  return {std::bit_cast<float>(inverse_scale),
          std::bit_cast<float>(binary32::divide(binary32::one, inverse_scale))};
}

}  // namespace detail

/// Records an amax of this step: history[0] becomes the larger of the two, where a NaN is larger
/// than all numbers. An empty history stays empty.
///
/// @param history  amaxes, history[0] of this step
/// @param amax  as in quantize_statistics
constexpr void observe(std::span<float> history, float amax) {
  if (history.empty()) return;
  namespace binary32 = numerics::binary32;
  const std::uint32_t a = binary32::magnitude(std::bit_cast<std::uint32_t>(amax));
  const std::uint32_t maximum = binary32::magnitude(std::bit_cast<std::uint32_t>(history[0]));
  if (a > maximum) history[0] = std::bit_cast<float>(a);
}

/// Returns the scales for the next step, and advances the history.
///
/// The amax is the largest number of the history, or history[0]. If the amax is finite and above 0,
/// S = RN((M * 2^-margin) / amax), or FLT_MAX if S overflows. Otherwise the scales stay.
///
/// The history is then rotated left by one, and history[0] becomes 0. After the rotation history[1]
/// is the oldest amax and the last element is the newest. With zero_step::skip, a history[0] of 0
/// leaves history and scales unchanged.
///
/// @param state  the present scales
/// @param history  amaxes; advanced by one step
/// @param settings  a margin outside -64 .. 64 is replaced by the nearest bound
constexpr delayed_scale updated(const delayed_scale& state, std::span<float> history,
                                const delayed_settings& settings) {
  namespace binary32 = numerics::binary32;
  if (history.empty()) return state;
  auto amax = std::bit_cast<std::uint32_t>(history[0]);
  if (settings.zero_step == samebits::zero_step::skip && amax == 0) return state;
  if (settings.choice == history_choice::maximum) {
    amax = 0;
    for (const float h : history) {
      const auto bits = std::bit_cast<std::uint32_t>(h);
      if (bits <= binary32::inf && bits > amax) amax = bits;
    }
  }
  const float newest = history[0];
  for (std::size_t i = 1; i + 1 < history.size(); ++i) history[i] = history[i + 1];
  history.back() = newest;
  history[0] = 0.0f;
  if (amax == 0 || amax >= binary32::inf) return state;
  return detail::scale_of_amax(settings, amax);
}

}  // namespace samebits
