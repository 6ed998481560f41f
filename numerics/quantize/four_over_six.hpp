// Four over six: the scale of a tile that is chosen by the errors of its elements, for the rules
// nvfp4_4over6_* (samebits/core/scaling.hpp).
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/scale.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::numerics {

inline constexpr int four_over_six_rows = 16;  ///< largest number of rows of a tile

/// The error of one element under a scale: |e|, or e^2 for nvfp4_4over6_mse.
template <class Arithmetic>
SAMEBITS_HD constexpr std::uint32_t element_error(scale_rule rule, const format_spec& to,
                                                  const tensor_level& tensor,
                                                  const tile_scale& scale, std::uint32_t x) {
  const cast_rule cast{rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  const std::uint32_t code =
      encode<std::uint32_t>(to, cast, Arithmetic::product(x, scale.factor), 0).code;
  const std::uint32_t q = decode<std::uint32_t>(to, code);
  const std::uint32_t product =
      Arithmetic::product(Arithmetic::product(q, scale.dequantization_scale), tensor.stored);
  const std::uint32_t v = Arithmetic::quotient(product, tensor_range<Arithmetic>(rule, to));
  const std::uint32_t e = Arithmetic::sum(v, x ^ binary32::sign_bit);
  return rule == scale_rule::nvfp4_4over6_mae ? binary32::magnitude(e) : Arithmetic::product(e, e);
}

/// The sum of the errors of a tile. element(row, col) returns binary32 bits.
template <class Arithmetic, class Element>
SAMEBITS_HD constexpr std::uint32_t tile_error(const scale_settings& settings,
                                               const format_spec& to, const tile_scale& scale,
                                               int rows, int cols, const Element& element) {
  std::uint32_t sums[four_over_six_rows] = {};
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) {
      sums[r] = Arithmetic::sum(
          sums[r],
          element_error<Arithmetic>(settings.rule, to, settings.tensor, scale, element(r, c)));
    }
  }
  for (int half = four_over_six_rows / 2; half > 0; half /= 2) {
    for (int r = 0; r < half; ++r) sums[r] = Arithmetic::sum(sums[r], sums[r + half]);
  }
  return sums[0];
}

/// The scale of a tile of rows x cols elements: the one that maps the amax to M, or 1.5 times it if the
/// sum of errors is then smaller. A tile of `one_column` is summed as one row.
template <class Arithmetic, class Element>
SAMEBITS_HD constexpr tile_scale four_over_six_scale(const scale_settings& settings,
                                                     const format_spec& to, tile_amax amax,
                                                     int rows, int cols, bool one_column,
                                                     const Element& element) {
  constexpr std::uint32_t one_and_a_half = 0x3FC00000u;
  const tile_scale six = any_scale_of<Arithmetic>(to, settings, amax);
  const bool unit =
      settings.nonfinite == nonfinite::te && amax == static_cast<tile_amax>(binary32::inf);
  if (unit) return six;
  const std::uint32_t a =
      bounded_amax(settings, amax == no_amax ? 0u : static_cast<std::uint32_t>(amax));
  const std::uint32_t base = base_scale<Arithmetic>(to, settings.tensor, a);
  const std::uint32_t raised = Arithmetic::product(base, one_and_a_half);
  const tile_scale four = with_factor<Arithmetic>(settings.tensor, e4m3_value(raised));
  const auto error = [&](const tile_scale& s) {
    if (!one_column) return tile_error<Arithmetic>(settings, to, s, rows, cols, element);
    const auto turned = [&](int r, int c) { return element(c, r); };
    return tile_error<Arithmetic>(settings, to, s, cols, rows, turned);
  };
  const std::uint32_t six_error = error(six);
  return !binary32::is_nan(six_error) && error(four) < six_error ? four : six;
}

}  // namespace samebits::numerics
