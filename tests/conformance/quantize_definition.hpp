// Quantization by the definition in numerics/, one tile and one element after another.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/quantize.hpp"
#include "support/quantize_cases.hpp"

namespace samebits::support {

/// Some rows of a view.
inline matrix_view rows_of(matrix_view v, std::int64_t row, std::int64_t rows) {
  v.data = static_cast<std::byte*>(v.data) + row * v.row_stride * storage_bytes(v.format);
  v.rows = rows;
  return v;
}

namespace detail {

inline void put(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint32_t code) {
  if (v.data == nullptr) return;
  const std::int64_t at = row * v.row_stride + col * v.col_stride;
  const auto bytes = static_cast<std::size_t>(storage_bytes(v.format));  // little-endian
  std::memcpy(static_cast<std::byte*>(v.data) + at * storage_bytes(v.format), &code, bytes);
}

inline numerics::scale_settings scale_settings_of(const quantize_options& o, format_id from) {
  const std::uint32_t largest = o.scale_overflow == scale_overflow::flt_max
                                    ? numerics::binary32::max_finite
                                    : numerics::largest_value(spec_of(from));
  return {o.scale, o.nonfinite, std::bit_cast<std::uint32_t>(o.eps),
          std::bit_cast<std::uint32_t>(o.upper_bound), largest};
}

/// R of an element, aligned as encode() takes it.
inline std::uint32_t dither_of(const quantize_case& c, std::int64_t row, std::int64_t col) {
  const random_stream& r = c.options.random;
  const std::uint64_t pitch = r.pitch.value_or(static_cast<std::uint64_t>(c.in.cols));
  const std::uint64_t index =
      r.offset + static_cast<std::uint64_t>(row) * pitch + static_cast<std::uint64_t>(col);
  return numerics::align_random<std::uint32_t>(
      numerics::random_word(r.seed, r.stream, index, r.bits), r.bits);
}

}  // namespace detail

/// What quantize() must write. Statistics, whose definition is a sum over a tree, are those of the
/// reference backend, which property.quantize compares with the oracle.
inline void define_quantization(const quantize_case& c, strided_buffer& in,
                                const quantize_outputs& outputs) {
  const quantize_options& o = c.options;
  const std::int64_t tile_rows =
      o.tile.rows == 0 ? std::max<std::int64_t>(1, c.in.rows) : o.tile.rows;
  const std::int64_t tile_cols =
      o.tile.cols == 0 ? std::max<std::int64_t>(1, c.in.cols) : o.tile.cols;
  const format_spec to = spec_of(c.to);
  const auto element = [&](std::int64_t row, std::int64_t col) {
    return numerics::decode<std::uint32_t>(spec_of(c.from),
                                           static_cast<std::uint32_t>(in.at(row, col)));
  };
  for (std::int64_t row = 0; row < c.in.rows; row += tile_rows) {
    for (std::int64_t col = 0; col < c.in.cols; col += tile_cols) {
      const std::int64_t row_end = std::min(c.in.rows, row + tile_rows);
      const std::int64_t col_end = std::min(c.in.cols, col + tile_cols);
      const auto for_tile = [&](const auto& f) {
        for (std::int64_t r = row; r < row_end; ++r) {
          for (std::int64_t k = col; k < col_end; ++k) f(r, k, element(r, k));
        }
      };
      numerics::tile_amax amax = numerics::no_amax;
      for_tile([&](std::int64_t, std::int64_t, std::uint32_t x) {
        amax = numerics::combined(amax, numerics::amax_contribution(o.nonfinite, x));
      });
      const auto scale = numerics::scale_of(to, detail::scale_settings_of(o, c.from), amax);
      detail::put(outputs.scales, row / tile_rows, col / tile_cols, scale.dequantization_scale);
      detail::put(outputs.scales_transposed, col / tile_cols, row / tile_rows,
                  scale.dequantization_scale);
      for_tile([&](std::int64_t r, std::int64_t k, std::uint32_t x) {
        const std::uint32_t dither =
            o.rounding == rounding::stochastic ? detail::dither_of(c, r, k) : 0;
        const auto code =
            numerics::encode<std::uint32_t>(to, {o.rounding, o.overflow, o.nan},
                                            numerics::scaled(o.scale, scale, x), dither)
                .code;
        detail::put(outputs.codes, r, k, code);
        detail::put(outputs.codes_transposed, k, r, code);
      });
    }
  }
  if (outputs.statistics != nullptr) {
    strided_buffer codes(c.to, {c.in.rows, c.in.cols, c.in.cols, 1, 0});
    quantize(in.view(), {.codes = codes.view(), .statistics = outputs.statistics}, o,
             {"reference"});
  }
}

}  // namespace samebits::support
