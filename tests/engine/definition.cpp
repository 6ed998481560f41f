// Conversion, arithmetic and quantization by their definitions.
#include "engine/definition.hpp"

#include <algorithm>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
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

void put(const matrix_view& v, std::int64_t row, std::int64_t col, std::uint64_t code) {
  if (v.data != nullptr) put_code(v, row, col, code);
}

}  // namespace

returned_values convert_by_definition(const array_case& c, const call_site& site) {
  const matrix_view &in = site.views[0], &out = site.views[1];
  for_each_element(in, [&](std::int64_t row, std::int64_t col) {
    const random_bits random = bits_of(c.rule.rounding, c.random, row, col, in.cols);
    put_code(out, row, col, convert_code(c.from, c.to, code_at(in, row, col), c.rule, random).code);
  });
  return {};
}

returned_values compute_by_definition(const array_arithmetic_case& c, const call_site& site) {
  const std::vector<matrix_view>& v = site.views;
  const array_operands in = {v[0], v[1], v[2]};
  const matrix_view& out = v[at_result];
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
  if (c.asked != flags_asked::none) {
    put_code(v[at_all_flags], 0, 0, static_cast<std::uint64_t>(all));
  }
  return {};
}

returned_values quantize_by_definition(const quantize_case& c, const call_site& site) {
  if (c.skip.value_or(0) != 0) return {};
  const matrix_view& in = site.views[quantize_buffers::in];
  const quantize_outputs outputs = outputs_of(c, site);
  const quantize_options& o = c.options;
  const scaled_matrix scaled = scale_by_definition(in, c.to, o);
  const std::int64_t tiles_in_row = scales_shape(in.rows, in.cols, o.tile).cols;
  for (std::size_t i = 0; i < scaled.scales.size(); ++i) {
    const auto tile = static_cast<std::int64_t>(i);
    const std::int64_t row = tile / tiles_in_row, col = tile % tiles_in_row;
    const std::uint32_t scale = scaled.scales[i].dequantization_scale;
    const std::uint64_t code = c.scale_format == format_id::fp32
                                   ? scale
                                   : convert_code(format_id::fp32, c.scale_format, scale).code;
    put(outputs.scales, row, col, code);
    put(outputs.scales_transposed, col, row, code);
  }
  std::size_t i = 0;
  for_each_element(in, [&](std::int64_t row, std::int64_t col) {
    const random_bits random = bits_of(o.rounding, o.random, row, col, in.cols);
    const std::uint32_t dither =
        o.rounding == rounding::stochastic
            ? numerics::align_random<std::uint32_t>(random.value, random.count)
            : 0;
    const auto code =
        numerics::encode<std::uint32_t>(spec_of(c.to), {o.rounding, o.overflow, o.nan},
                                        scaled.elements[i++], dither)
            .code;
    put(outputs.codes, row, col, code);
    put(outputs.codes_transposed, col, row, code);
  });
  if (outputs.statistics == nullptr) return {};
  strided_buffer codes(c.to, dense_layout(in.rows, in.cols));
  quantize(in, {.codes = codes.view(), .statistics = outputs.statistics}, options_of(c, site),
           {"reference"});
  return {};
}

}  // namespace samebits::support
