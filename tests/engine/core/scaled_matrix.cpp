// Amaxes, scales and scaled elements of a matrix.
#include "engine/core/scaled_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "numerics/arithmetic/by_definition.hpp"
#include "numerics/bits/decode.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

numerics::scale_settings scale_settings_of(const quantize_options& o, format_id from) {
  const std::uint32_t largest = o.scale_overflow == scale_overflow::flt_max
                                    ? numerics::binary32::max_finite
                                    : numerics::largest_value(spec_of(from));
  return {o.scale, o.nonfinite, std::bit_cast<std::uint32_t>(o.eps),
          std::bit_cast<std::uint32_t>(o.upper_bound), largest};
}

std::uint32_t code_at(const const_matrix_view& in, std::int64_t element) {
  const auto bytes = static_cast<std::size_t>(storage_bytes(in.format));
  std::uint32_t code = 0;  // little-endian
  std::memcpy(&code, static_cast<const std::byte*>(in.data) + element * storage_bytes(in.format),
              bytes);
  return code;
}

numerics::tile_scale scale_of(format_id to, const quantize_options& o, format_id from,
                              numerics::tile_amax amax, const scaling_variation& v) {
  const format_spec spec = spec_of(v.made_for.value_or(to));
  const numerics::scale_settings settings = scale_settings_of(o, from);
  if (!v.plain) return numerics::scale_of(spec, settings, amax);
  const auto a = static_cast<std::uint32_t>(amax == numerics::no_amax ? 0 : amax);
  const std::uint32_t s =
      numerics::by_definition::quotient(std::max(a, settings.eps), numerics::largest_value(spec));
  return {s, s};
}

}  // namespace

scaled_matrix scale_by_definition(const const_matrix_view& in, format_id to,
                                  const quantize_options& o, const scaling_variation& variation) {
  const matrix_shape tiles = scales_shape(in.rows, in.cols, o.tile);
  const std::int64_t high = o.tile.rows == 0 ? std::max<std::int64_t>(1, in.rows) : o.tile.rows;
  const std::int64_t wide = o.tile.cols == 0 ? std::max<std::int64_t>(1, in.cols) : o.tile.cols;
  scaled_matrix all;
  all.amaxes.assign(static_cast<std::size_t>(tiles.rows * tiles.cols), numerics::no_amax);
  for (std::int64_t row = 0; row < in.rows; ++row) {
    for (std::int64_t col = 0; col < in.cols; ++col) {
      all.tile_of.push_back(static_cast<std::size_t>(row / high * tiles.cols + col / wide));
      const std::uint32_t x = numerics::decode<std::uint32_t>(
          spec_of(in.format), code_at(in, row * in.row_stride + col * in.col_stride));
      all.inputs.push_back(x);
      const std::uint32_t seen = variation.seen == nullptr ? x : variation.seen(x);
      numerics::tile_amax& amax = all.amaxes[all.tile_of.back()];
      amax = numerics::combined(amax, numerics::amax_contribution(o.nonfinite, seen));
    }
  }
  quantize_options of_elements = o;
  of_elements.scale = variation.element_rule.value_or(o.scale);
  std::vector<numerics::tile_scale> by;
  for (const numerics::tile_amax amax : all.amaxes) {
    all.scales.push_back(scale_of(to, o, in.format, amax, variation));
    by.push_back(scale_of(to, of_elements, in.format, amax, variation));
  }
  for (std::size_t i = 0; i < all.inputs.size(); ++i) {
    all.elements.push_back(numerics::scaled(of_elements.scale, by[all.tile_of[i]], all.inputs[i]));
  }
  return all;
}

}  // namespace samebits::support
