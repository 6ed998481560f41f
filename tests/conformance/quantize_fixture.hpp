// The fixture of the conformance suite of quantization: cases, their memory, and the comparison of an
// executor's results with the definition.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "conformance/quantize_definition.hpp"
#include "conformance/quantize_target.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "support/even_draw.hpp"
#include "support/quantize_cases.hpp"

namespace samebits::support {

/// Which outputs are wanted, as bits of a mask.
namespace wanted {
inline constexpr unsigned codes = 1, scales = 2, codes_transposed = 4, scales_transposed = 8,
                          statistics = 16, all = 31;
}

class QuantizeSuite : public ::testing::TestWithParam<quantize_target> {
 protected:
  /// A dense case; its matrix is part of content_of(from, to).
  static quantize_case dense(format_id from, format_id to, std::int64_t rows, std::int64_t cols,
                             const quantize_options& options) {
    quantize_case c;
    c.from = from;
    c.to = to;
    c.options = options;
    const matrix_shape scales = scales_shape(rows, cols, options.tile);
    c.in = c.codes = {rows, cols, cols, 1, 0};
    c.codes_transposed = {cols, rows, rows, 1, 0};
    c.scales = {scales.rows, scales.cols, scales.cols, 1, 0};
    c.scales_transposed = {scales.cols, scales.rows, scales.rows, 1, 0};
    return c;
  }

  /// Elements of the source: stretches of one magnitude, of any bits, zeros, some NaN and Inf.
  static const std::vector<std::uint64_t>& content_of(format_id from, format_id to) {
    static std::vector<std::uint64_t> made[format_count][format_count];
    auto& codes = made[static_cast<int>(from)][static_cast<int>(to)];
    for (std::uint64_t seed = 0; codes.size() < 12000; ++seed) {
      quantize_case c = dense(from, to, 1, 1009, {});
      c.content = seed;
      const strided_buffer in = matrix_of(c);
      for (std::int64_t i = 0; i < c.in.cols; ++i) codes.push_back(in.load(i));
    }
    return codes;
  }

  /// Input memory of a case, starting at another element of the content with each.
  static strided_buffer filled(const quantize_case& c) {
    strided_buffer in(c.from, c.in);
    const auto& codes = content_of(c.from, c.to);
    std::size_t at = c.content * 977 % codes.size();
    for (std::int64_t i = 0; i < c.in.span(); ++i) {
      in.store(i, codes[at]);
      at = at + 1 == codes.size() ? 0 : at + 1;
    }
    return in;
  }

  /// Quantizes on the target; false where a partial one lacks the quantization.
  static bool target_quantizes(const quantize_case& c, strided_buffer& in,
                               const quantize_outputs& outputs) {
    try {
      GetParam().quantize(in.view(), outputs, c.options, c.threads);
      return true;
    } catch (const unsupported&) {
      if (!GetParam().partial) throw;
      return false;
    }
  }

  static quantize_outputs outputs_of(quantize_result& result, unsigned mask) {
    quantize_outputs o = result.outputs();
    if ((mask & wanted::codes) == 0) o.codes = {};
    if ((mask & wanted::scales) == 0) o.scales = {};
    if ((mask & wanted::codes_transposed) == 0) o.codes_transposed = {};
    if ((mask & wanted::scales_transposed) == 0) o.scales_transposed = {};
    if ((mask & wanted::statistics) == 0) o.statistics = nullptr;
    return o;
  }

  /// Quantizes and compares all memory with what the definition leaves there: results in their
  /// places, guards elsewhere; statistics with those of the reference.
  static void expect_conforms(const quantize_case& c,
                              unsigned mask = wanted::codes | wanted::scales) {
    strided_buffer in = filled(c);
    quantize_result got(c);
    if (!target_quantizes(c, in, outputs_of(got, mask))) return;
    quantize_result expected(c);
    define_quantization(c, in, outputs_of(expected, mask));
    if (expected.codes.bytes() == got.codes.bytes() &&
        expected.scales.bytes() == got.scales.bytes() &&
        expected.codes_transposed.bytes() == got.codes_transposed.bytes() &&
        expected.scales_transposed.bytes() == got.scales_transposed.bytes() &&
        expected.statistics == got.statistics) {
      return;
    }
    FAIL() << first_difference("scale", got.scales, expected.scales, c.scales)
           << first_difference("code", got.codes, expected.codes, c.codes)
           << first_difference("transposed scale", got.scales_transposed,
                               expected.scales_transposed, c.scales_transposed)
           << first_difference("transposed code", got.codes_transposed, expected.codes_transposed,
                               c.codes_transposed)
           << (expected.statistics == got.statistics ? "" : "statistics differ; ") << "outputs "
           << mask << " of " << c;
  }

  static std::string first_difference(const char* what, const strided_buffer& got,
                                      const strided_buffer& expected, const array_layout& layout) {
    if (got.bytes() == expected.bytes()) return "";
    for (std::int64_t row = 0; row < layout.rows; ++row) {
      for (std::int64_t col = 0; col < layout.cols; ++col) {
        if (got.at(row, col) == expected.at(row, col)) continue;
        return std::string(what) + " [" + std::to_string(row) + ", " + std::to_string(col) +
               "] is " + std::to_string(got.at(row, col)) + ", by the definition " +
               std::to_string(expected.at(row, col)) + "; ";
      }
    }
    return std::string("wrote outside the ") + what + "s; ";
  }

  static random_stream stream_of(int bits) {
    return {0x9E3779B97F4A7C15u, 3, 1000, std::nullopt, bits};
  }

  /// A dense case of the test's next number. What the test does not fix itself is chosen evenly: the
  /// formats, the rule, the policies and, unless given, the rounding.
  quantize_case random_case(std::int64_t rows, std::int64_t cols, const tile_shape& tile, int bits,
                            std::optional<rounding> mode = std::nullopt) {
    quantize_options o{.tile = tile, .random = stream_of(bits)};
    const format_id from = sources[draws.draw("source", std::size(sources))];
    const format_id to = targets[draws.draw("target", std::size(targets))];
    o.scale = draws.draw_as<scale_rule>("rule", enum_count<scale_rule>);
    o.nonfinite = draws.draw_as<nonfinite>("non-finite policy", enum_count<nonfinite>);
    o.rounding = mode ? *mode : modes[draws.draw("rounding", std::size(modes))];
    o.overflow = draws.draw_as<overflow>("overflow", enum_count<overflow>);
    o.nan = draws.draw_as<nan_policy>("NaN policy", enum_count<nan_policy>);
    o.scale_overflow = draws.draw_as<scale_overflow>("scale overflow", enum_count<scale_overflow>);
    quantize_case c = dense(from, to, rows, cols, o);
    c.content = number++;
    return c;
  }

  even_draw draws;
  std::uint64_t number = 0;  ///< of cases so far

  static std::vector<tile_shape> all_tiles() {
    std::vector<tile_shape> tiles = {{1, 0}, {0, 1}, {0, 0}};
    for (const std::int64_t g : {16, 32, 64, 128, 256}) {
      tiles.insert(tiles.end(), {{1, g}, {g, 1}, {g, g}});
    }
    return tiles;
  }
  static constexpr format_id sources[] = {format_id::fp32, format_id::bf16, format_id::fp16};
  static constexpr format_id targets[] = {format_id::e4m3, format_id::e5m2};
  static constexpr rounding modes[] = {rounding::nearest_even, rounding::stochastic};
};

}  // namespace samebits::support
