// Scaled elements from the definition of scales and tiles.
#include "scaled_elements.hpp"

#include <bit>

#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

std::uint32_t element(const quantizer_under_test& q, const code_matrix& in, std::size_t i) {
  return static_cast<std::uint32_t>(convert_code(q.from, format_id::fp32, in.codes[i]).code);
}

numerics::scale_settings settings_of(const quantizer_under_test& q) {
  const quantize_options& o = q.options;
  numerics::scale_settings settings{o.scale, o.nonfinite, std::bit_cast<std::uint32_t>(o.eps),
                                    std::bit_cast<std::uint32_t>(o.upper_bound)};
  if (o.scale_overflow == scale_overflow::input_max) {
    settings.largest_factor = numerics::largest_value(spec_of(q.from));
  }
  return settings;
}

}  // namespace

std::size_t tile_of(const quantizer_under_test& quantizer, const code_matrix& in, std::size_t i) {
  const matrix_shape tile = tile_extent(in, quantizer.options.tile);
  const auto n = static_cast<std::int64_t>(i);
  const std::int64_t tiles_in_row = (in.cols + tile.cols - 1) / tile.cols;
  return static_cast<std::size_t>(n / in.cols / tile.rows * tiles_in_row + n % in.cols / tile.cols);
}

std::vector<std::int32_t> tile_amaxes(const quantizer_under_test& quantizer,
                                      const code_matrix& in) {
  const matrix_shape scales = scales_shape(in.rows, in.cols, quantizer.options.tile);
  std::vector<std::int32_t> amaxes(static_cast<std::size_t>(scales.rows * scales.cols),
                                   numerics::no_amax);
  for (std::size_t i = 0; i < in.codes.size(); ++i) {
    std::int32_t& amax = amaxes[tile_of(quantizer, in, i)];
    amax = numerics::combined(
        amax, numerics::amax_contribution(quantizer.options.nonfinite, element(quantizer, in, i)));
  }
  return amaxes;
}

std::vector<std::uint64_t> scaled_elements(const quantizer_under_test& quantizer,
                                           const code_matrix& in) {
  const numerics::scale_settings settings = settings_of(quantizer);
  std::vector<numerics::tile_scale> scales;
  for (const std::int32_t amax : tile_amaxes(quantizer, in)) {
    scales.push_back(numerics::scale_of(spec_of(quantizer.to), settings, amax));
  }
  std::vector<std::uint64_t> scaled;
  for (std::size_t i = 0; i < in.codes.size(); ++i) {
    scaled.push_back(numerics::scaled(settings.rule, scales[tile_of(quantizer, in, i)],
                                      element(quantizer, in, i)));
  }
  return scaled;
}

}  // namespace samebits::testkit
