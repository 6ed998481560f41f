// Quantization against the oracle: every code, every scale, all statistics, and back.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/quantize.hpp"
#include "samebits/quantize.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/quantize_cases.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

oracle::tiling tiling_of(std::int64_t rows, std::int64_t cols, const tile_shape& tile) {
  const auto size = [](std::int64_t extent, std::int64_t whole) {
    return static_cast<std::uint64_t>(extent != 0 ? extent : std::max<std::int64_t>(whole, 1));
  };
  return {static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols), size(tile.rows, rows),
          size(tile.cols, cols)};
}

oracle::quantize_rule rule_of(const quantize_options& o, format_id from) {
  oracle::quantize_rule rule;
  rule.scale.rule = o.scale;
  rule.scale.nonfinite = o.nonfinite;
  if (o.scale_overflow == scale_overflow::input_max) {
    rule.scale.infinite_factor = from == format_id::fp32   ? 0x7F7FFFFF
                                 : from == format_id::bf16 ? 0x7F7F0000
                                                           : 0x477FE000;  // 65504
  }
  rule.scale.eps = bits(o.eps);
  if (o.upper_bound != std::numeric_limits<float>::infinity()) {
    rule.scale.upper_bound = bits(o.upper_bound);
  }
  rule.cast = {o.rounding, o.overflow, o.nan};
  rule.random = o.random;
  return rule;
}

/// The elements of a matrix in row-major order.
template <class Code>
std::vector<Code> elements_of(const strided_buffer& buffer, const array_layout& layout) {
  std::vector<Code> all;
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t col = 0; col < layout.cols; ++col) {
      all.push_back(static_cast<Code>(buffer.at(row, col)));
    }
  }
  return all;
}

template <class Code>
void require_equal(const char* what, const std::vector<Code>& got,
                   const std::vector<Code>& expected) {
  if (got.size() != expected.size()) {
    RC_FAIL(std::string(what) + ": " + std::to_string(got.size()) + " elements, the oracle has " +
            std::to_string(expected.size()));
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    RC_FAIL(std::string(what) + " number " + std::to_string(i) + " is " + std::to_string(got[i]) +
            ", by the oracle " + std::to_string(expected[i]));
  }
}

TEST(QuantizeProperty, EverythingIsTheOracles) {
  const rc::Gen<quantize_case> generator = quantize_cases();
  expect_holds("quantize", 500, [&] {
    const quantize_case c = *generator;
    strided_buffer in = matrix_of(c);
    const quantize_result got = quantized(c, in, executor_of(c));
    const oracle::quantized expected = oracle::quantize(
        oracle_of(c.from), oracle_of(c.to), elements_of<std::uint32_t>(in, c.in),
        tiling_of(c.in.rows, c.in.cols, c.options.tile), rule_of(c.options, c.from));

    const bool bytes = c.scale_format == format_id::e8m0;
    require_equal("scale", elements_of<std::uint32_t>(got.scales, c.scales),
                  bytes ? expected.e8m0 : expected.scales);
    require_equal("code", elements_of<std::uint8_t>(got.codes, c.codes), expected.codes);
    if (!bytes) {  // of bytes a law: TransposedOutputsAreTheTransposes
      require_equal("transposed scale",
                    elements_of<std::uint32_t>(got.scales_transposed, c.scales_transposed),
                    expected.scales_transposed);
    }
    require_equal("transposed code",
                  elements_of<std::uint8_t>(got.codes_transposed, c.codes_transposed),
                  expected.codes_transposed);

    const quantize_statistics& s = got.statistics;
    const oracle::quantize_statistics& e = expected.statistics;
    RC_ASSERT(s.elements == expected.codes.size());
    RC_ASSERT(bits(s.amax) == e.amax);
    RC_ASSERT(bits(s.min_nonzero) == e.min_nonzero);
    RC_ASSERT(s.zeros == e.zeros);
    RC_ASSERT(s.underflowed == e.underflowed);
    RC_ASSERT(s.saturated == e.overflowed);
    RC_ASSERT(s.nan == e.nan);
    RC_ASSERT(s.inf == e.inf);
    RC_ASSERT(std::bit_cast<std::uint64_t>(s.noise) == e.error_energy);
    RC_ASSERT(std::bit_cast<std::uint64_t>(s.signal) == e.signal_energy);

    // Backends may take another way to codes and scales alone.
    quantize_result plain(c);
    quantize(in.view(), {.codes = plain.codes.view(), .scales = plain.scales.view()}, c.options,
             executor_of(c));
    RC_ASSERT(plain.codes.guards_are_intact());
    require_equal("scale alone", elements_of<std::uint32_t>(plain.scales, c.scales),
                  bytes ? expected.e8m0 : expected.scales);
    require_equal("code alone", elements_of<std::uint8_t>(plain.codes, c.codes), expected.codes);
  });
}

TEST(QuantizeProperty, GivenInverseScalesAreTheOracles) {
  // Any S: Inf, NaN, 0 and negative numbers too.
  const rc::Gen<quantize_case> generator = quantize_cases();
  expect_holds("inverse_scales", 300, [&] {
    quantize_case c = *generator;
    c.scale_format = format_id::fp32;
    strided_buffer in = matrix_of(c);
    strided_buffer given(format_id::fp32, c.scales);
    std::mt19937_64 engine(c.content);
    for (std::int64_t i = 0; i < c.scales.span(); ++i) {
      const auto family = static_cast<code_family>(engine() % code_family_count);
      given.store(i, draw_code(family, format_id::fp32, c.from, [&] { return engine(); }));
    }
    oracle::quantize_rule rule = rule_of(c.options, c.from);
    rule.inverse_scales = elements_of<std::uint32_t>(given, c.scales);
    if (rule.inverse_scales.empty()) return;
    c.options.inverse_scales = given.view();
    const quantize_result got = quantized(c, in, executor_of(c));
    const oracle::quantized expected =
        oracle::quantize(oracle_of(c.from), oracle_of(c.to), elements_of<std::uint32_t>(in, c.in),
                         tiling_of(c.in.rows, c.in.cols, c.options.tile), rule);
    require_equal("scale", elements_of<std::uint32_t>(got.scales, c.scales), expected.scales);
    require_equal("code", elements_of<std::uint8_t>(got.codes, c.codes), expected.codes);
    RC_ASSERT(got.statistics.saturated == expected.statistics.overflowed);
    RC_ASSERT(std::bit_cast<std::uint64_t>(got.statistics.noise) ==
              expected.statistics.error_energy);
  });
}

TEST(QuantizeProperty, DequantizationIsTheOracles) {
  // Any codes with any scales, Inf and NaN among them, not only those that quantize() returns.
  const rc::Gen<quantize_case> generator = quantize_cases();
  expect_holds("dequantize", 1200, [&] {
    quantize_case c = *generator;
    strided_buffer codes(c.to, c.codes);
    strided_buffer scales(c.scale_format, c.scales);
    std::mt19937_64 engine(c.content);
    for (std::int64_t i = 0; i < c.codes.span(); ++i) codes.store(i, engine() & 0xFF);
    for (std::int64_t i = 0; i < c.scales.span(); ++i) {
      const auto family = static_cast<code_family>(engine() % code_family_count);
      const auto any = draw_code(family, format_id::fp32, c.from, [&] { return engine(); });
      scales.store(i, c.scale_format == format_id::e8m0 ? any & 0xFF : any);
    }
    array_layout layout = c.in;
    layout.col_stride = 1;
    layout.row_stride = layout.cols;
    strided_buffer out(c.from, layout);
    dequantize(codes.view(), scales.view(), out.view(), c.options.tile, executor_of(c));
    RC_ASSERT(out.guards_are_intact());
    auto factors = elements_of<std::uint32_t>(scales, c.scales);
    if (c.scale_format == format_id::e8m0) {
      for (std::uint32_t& code : factors) {
        code = static_cast<std::uint32_t>(
            oracle::convert(oracle_of(format_id::e8m0), oracle_of(format_id::fp32), code, {}));
      }
    }
    require_equal("value", elements_of<std::uint32_t>(out, layout),
                  oracle::dequantize(oracle_of(c.to), oracle_of(c.from),
                                     elements_of<std::uint8_t>(codes, c.codes), factors,
                                     tiling_of(c.in.rows, c.in.cols, c.options.tile)));
  });
}

}  // namespace
}  // namespace samebits
