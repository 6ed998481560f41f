// Conversion, arithmetic and quantization by their definitions.
#include "engine/definition.hpp"

#include <algorithm>
#include <bit>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/scalar.hpp"

namespace samebits::support {
namespace {

/// The random bits of an element of a matrix with so many columns; none without stochastic rounding.
random_bits bits_of(rounding round, const random_stream& r, std::int64_t row, std::int64_t col,
                    std::int64_t cols) {
  if (round != rounding::stochastic) return {};
  const std::uint64_t pitch = r.pitch.value_or(static_cast<std::uint64_t>(cols));
  const std::uint64_t index =
      r.offset + static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
  return {random_word(r.seed, r.stream, index, r.bits), r.bits};
}

numerics::scale_settings scale_settings_of(const quantize_options& o, format_id from) {
  const std::uint32_t largest = o.scale_overflow == scale_overflow::flt_max
                                    ? numerics::binary32::max_finite
                                    : numerics::largest_value(spec_of(from));
  return {o.scale, o.nonfinite, std::bit_cast<std::uint32_t>(o.eps),
          std::bit_cast<std::uint32_t>(o.upper_bound), largest};
}

void put(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint64_t code) {
  if (v.data != nullptr) put_code(v, row, col, code);
}

/// Quantizes rows [row, row + rows) and columns [col, col + cols), which are one tile.
void quantize_tile(const quantize_case& c, const matrix_view& in, const quantize_outputs& outputs,
                   std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols,
                   const matrix_shape& scale_at) {
  const quantize_options& o = c.options;
  const matrix_view tile = block_of(in, row, rows, col, cols);
  const auto element = [&](std::int64_t r, std::int64_t k) {
    return numerics::decode<std::uint32_t>(spec_of(c.from),
                                           static_cast<std::uint32_t>(code_at(tile, r, k)));
  };
  numerics::tile_amax amax = numerics::no_amax;
  for_each_element(tile, [&](std::int64_t r, std::int64_t k) {
    amax = numerics::combined(amax, numerics::amax_contribution(o.nonfinite, element(r, k)));
  });
  const auto scale = numerics::scale_of(spec_of(c.to), scale_settings_of(o, c.from), amax);
  const std::uint32_t stored = scale.dequantization_scale;
  const std::uint64_t code_of_scale =
      c.scale_format == format_id::fp32
          ? stored
          : convert_code(format_id::fp32, c.scale_format, stored).code;
  put(outputs.scales, scale_at.rows, scale_at.cols, code_of_scale);
  put(outputs.scales_transposed, scale_at.cols, scale_at.rows, code_of_scale);
  for_each_element(tile, [&](std::int64_t r, std::int64_t k) {
    const random_bits random = bits_of(o.rounding, o.random, row + r, col + k, in.cols);
    const std::uint32_t dither =
        o.rounding == rounding::stochastic
            ? numerics::align_random<std::uint32_t>(random.value, random.count)
            : 0;
    const std::uint32_t y = numerics::scaled(o.scale, scale, element(r, k));
    const auto code =
        numerics::encode<std::uint32_t>(spec_of(c.to), {o.rounding, o.overflow, o.nan}, y, dither)
            .code;
    put(outputs.codes, row + r, col + k, code);
    put(outputs.codes_transposed, col + k, row + r, code);
  });
}

}  // namespace

returned_values convert_by_definition(const array_case& c, const call_site& site) {
  const matrix_view &in = site.views[0], out = conversion_result(c, site);
  for_each_element(in, [&](std::int64_t row, std::int64_t col) {
    const random_bits random = bits_of(c.rule.rounding, c.random, row, col, in.cols);
    put_code(out, row, col, convert_code(c.from, c.to, code_at(in, row, col), c.rule, random).code);
  });
  return {};
}

returned_values compute_by_definition(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const array_operands in = arithmetic_operands_of(c, site);
  const matrix_view out = arithmetic_result_of(c, site);
  flags all = flags::none;
  for_each_element(out, [&](std::int64_t row, std::int64_t col) {
    const operands x = {{c.from[0], code_at(in.a, row, col)},
                        {c.from[1], code_at(in.b, row, col)},
                        {c.from[2], code_at(in.c, row, col)}};
    const random_bits random = bits_of(c.rule.rounding, c.random, row, col, out.cols);
    const arithmetic_result r = compute(c.op, x, c.to, c.rule, random);
    put_code(out, row, col, r.code);
    all = all | r.raised;
    if (c.asked == flags_asked::each) {
      put_code(v[at_each_flags], row, col, static_cast<std::uint64_t>(r.raised));
    }
  });
  if (c.asked == flags_asked::each) {
    put_code(v[at_all_flags], 0, 0, static_cast<std::uint64_t>(all));
  }
  return {};
}

returned_values quantize_by_definition(const quantize_case& c, const call_site& site) {
  if (c.skip.value_or(0) != 0) return {};
  const matrix_view& in = site.views[quantize_buffers::in];
  const quantize_outputs outputs = outputs_of(c, site);
  const tile_shape& tile = c.options.tile;
  const std::int64_t high = tile.rows == 0 ? std::max<std::int64_t>(1, in.rows) : tile.rows;
  const std::int64_t wide = tile.cols == 0 ? std::max<std::int64_t>(1, in.cols) : tile.cols;
  for (std::int64_t row = 0; row < in.rows; row += high) {
    for (std::int64_t col = 0; col < in.cols; col += wide) {
      quantize_tile(c, in, outputs, row, std::min(high, in.rows - row), col,
                    std::min(wide, in.cols - col), {row / high, col / wide});
    }
  }
  if (outputs.statistics == nullptr) return {};
  strided_buffer codes(c.to, dense_layout(in.rows, in.cols));
  quantize(in, {.codes = codes.view(), .statistics = outputs.statistics}, options_of(c, site),
           {"reference"});
  return {};
}

}  // namespace samebits::support
