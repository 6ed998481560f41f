// A law of quantization: a matrix that is quantized again keeps its values.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/cases/quantize.hpp"
#include "numerics/bits/layout.hpp"
#include "samebits/quantize.hpp"
#include "samebits/scalar.hpp"
#include "support/backends.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace samebits {
namespace {

using namespace support;

constexpr executor on_reference(int threads) { return {"reference", threads, nullptr}; }

// In a function of its own: RapidCheck would print every byte.
bool same_bytes(const strided_buffer& a, const strided_buffer& b) { return a.bytes() == b.bytes(); }

/// Everything a quantization writes.
struct quantize_result {
  explicit quantize_result(const quantize_case& c)
      : codes(c.to, c.codes),
        scales(c.scale_format, c.scales),
        codes_transposed(c.to, c.codes_transposed),
        scales_transposed(c.scale_format, c.scales_transposed) {}

  strided_buffer codes, scales, codes_transposed, scales_transposed;
};

quantize_result quantized(const quantize_case& c, strided_buffer& in, const executor& where) {
  quantize_result r(c);
  quantize(in.view(),
           {r.codes.view(), r.scales.view(), r.codes_transposed.view(), r.scales_transposed.view()},
           c.options, where);
  return r;
}

/// One of the host backends, by the case.
executor executor_of(const quantize_case& c) {
  static const std::vector<std::string> backends = supported_backends();
  return {backends[c.content % backends.size()], c.threads, nullptr};
}

rc::Gen<quantize_case> quantize_cases() {
  return case_generator<quantize_case>(draw_quantize_case, simpler_quantizations);
}

/// Whether nothing is left of a tile whose elements are all below half of the smallest code times
/// the smallest scale, 2^-127: what was a tile of numbers is one of zeros then, whose scale in fp32
/// is 1 (docs/decisions/0024).
bool vanished(const quantize_case& c, const quantize_result& before, const quantize_result& after,
              std::int64_t scale_row, std::int64_t scale_col) {
  constexpr std::uint32_t smallest = 0x00400000, one = 0x3F800000;
  if (c.scale_format != format_id::fp32 || before.scales.at(scale_row, scale_col) != smallest ||
      after.scales.at(scale_row, scale_col) != one) {
    return false;
  }
  const tile_shape t = c.options.tile;
  for (std::int64_t row = 0; row < c.in.rows; ++row) {
    for (std::int64_t col = 0; col < c.in.cols; ++col) {
      if ((t.rows == 0 ? 0 : row / t.rows) != scale_row) continue;
      if ((t.cols == 0 ? 0 : col / t.cols) != scale_col) continue;
      const std::uint64_t mask = numerics::magnitude_mask(spec_of(c.to));
      if ((before.codes.at(row, col) & mask) != 0) return false;
    }
  }
  return true;
}

TEST(QuantizeLaws, RequantizationKeepsTheValues) {
  const rc::Gen<quantize_case> generator = quantize_cases();
  expect_holds("requantization", 1000, [&] {
    quantize_case c = *generator;
    c.options.rounding = rounding::nearest_even;
    constexpr scale_rule scale_rules[] = {scale_rule::pow2,     scale_rule::te_pow2,
                                          scale_rule::mx_floor, scale_rule::mx_ceil,
                                          scale_rule::mx_even,  scale_rule::mx_rceil};
    c.options.scale = scale_rules[c.content % std::size(scale_rules)];
    c.options.upper_bound = quantize_options{}.upper_bound;
    strided_buffer in = matrix_of(c);
    for (std::int64_t i = 0; i < c.in.span(); ++i) {  // finite tiles
      if (!std::isfinite(decode_double(c.from, in.load(i)))) in.store(i, 0);
    }
    const array_layout dense{c.in.rows, c.in.cols, c.in.cols, 1, 0};
    strided_buffer first(format_id::fp32, dense);
    strided_buffer second(format_id::fp32, dense);
    quantize_result q = quantized(c, in, on_reference(1));
    dequantize(q.codes.view(), q.scales.view(), first.view(), c.options.tile, executor_of(c));
    for (std::int64_t i = 0; i < dense.span(); ++i) {
      // 256 * 2^120 is what FLT_MAX becomes.
      if (!std::isfinite(decode_double(format_id::fp32, first.load(i)))) return;
    }
    quantize_case again = c;
    again.from = format_id::fp32;
    again.in = dense;
    quantize_result r = quantized(again, first, executor_of(c));
    dequantize(r.codes.view(), r.scales.view(), second.view(), c.options.tile, executor_of(c));
    RC_ASSERT(same_bytes(first, second));
    if (c.options.scale == scale_rule::mx_floor || c.options.scale == scale_rule::mx_even) {
      RC_ASSERT(same_bytes(q.codes, r.codes));
      for (std::int64_t row = 0; row < c.scales.rows; ++row) {
        for (std::int64_t col = 0; col < c.scales.cols; ++col) {
          if (q.scales.at(row, col) == r.scales.at(row, col)) continue;
          RC_ASSERT(vanished(c, q, r, row, col));
        }
      }
    }

    // Codes and scales in every mode when the stored scale is passed back.
    again.scale_format = format_id::fp32;
    strided_buffer inverse_scales(format_id::fp32, c.scales);
    quantize_result kept(again);
    for (std::int64_t row = 0; row < c.scales.rows; ++row) {
      for (std::int64_t col = 0; col < c.scales.cols; ++col) {
        const std::uint64_t scale =
            convert_code(c.scale_format, format_id::fp32, q.scales.at(row, col)).code;
        const std::uint32_t inverse = std::bit_cast<std::uint32_t>(
            1 / std::bit_cast<float>(static_cast<std::uint32_t>(scale)));
        inverse_scales.store(row * c.scales.row_stride + col * c.scales.col_stride, inverse);
        kept.scales.store(row * c.scales.row_stride + col * c.scales.col_stride, scale);
      }
    }
    again.options.inverse_scales = inverse_scales.view();
    const quantize_result same = quantized(again, first, executor_of(c));
    RC_ASSERT(same_bytes(q.codes, same.codes));
    RC_ASSERT(same_bytes(kept.scales, same.scales));

    // From the transposed outputs as well, with the transposed tile.
    const array_layout turned{c.in.cols, c.in.rows, 1, c.in.cols, 0};
    strided_buffer third(format_id::fp32, turned);
    dequantize(q.codes_transposed.view(), q.scales_transposed.view(), third.view(),
               {c.options.tile.cols, c.options.tile.rows});
    RC_ASSERT(same_bytes(first, third));
  });
}

}  // namespace
}  // namespace samebits
