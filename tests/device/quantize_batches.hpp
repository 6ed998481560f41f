// The cases of device.quantize_many: what is random in each, and how many cover every combination.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <string>

#include "engine/cases/quantize.hpp"
#include "engine/core/even_draw.hpp"

namespace samebits::support {

/// Draws cases without layouts. Every `round` of them holds each tile by each rule and rounding once,
/// and each two values of any two other options together.
class quantize_batches {
 public:
  static constexpr tile_shape tiles[] = {{1, 128}, {128, 128}, {128, 1}, {1, 32}};
  static constexpr int bits[] = {0, 8, 16, 32};  ///< 0: nearest even
  static constexpr std::uint64_t round = std::size(tiles) * one_level_scale_rules * std::size(bits);

  /// The next case, of about `elements` elements; `in` has its shape.
  quantize_case next(std::int64_t elements) {
    if (number_ % round == 0) draws_ = even_draw();
    quantize_case c;
    c.content = number_++;
    std::mt19937_64 random(c.content + 90);
    draws_.begin();
    const std::size_t tile = c.content % std::size(tiles);
    const std::size_t rule = c.content / std::size(tiles) % one_level_scale_rules;
    const std::size_t rounding_bits =
        c.content / (std::size(tiles) * one_level_scale_rules) % std::size(bits);
    draws_.fix("tile", tile, std::size(tiles));
    draws_.fix("rule", rule, one_level_scale_rules);
    draws_.fix("rounding", rounding_bits, std::size(bits));
    constexpr format_id sources[] = {format_id::bf16, format_id::fp16, format_id::fp32};
    constexpr format_id targets[] = {format_id::e4m3, format_id::e5m2};
    constexpr std::int64_t widths[] = {4096, 2432, 4101, 1024};
    c.from = sources[draws_.draw("source", std::size(sources))];
    c.to = targets[draws_.draw("target", std::size(targets))];
    c.kind = draws_.draw("content", 2) != 0 ? matrix_content::any_bits : matrix_content::mixed;
    c.in.cols = widths[draws_.draw("columns", std::size(widths))];
    c.in.rows = std::max<std::int64_t>(128, (elements + c.in.cols - 1) / c.in.cols);
    c.wanted.codes_transposed = c.wanted.scales_transposed = draws_.draw("transposed", 2) != 0;
    c.wanted.statistics = draws_.draw("statistics", 2) != 0;
    c.options.tile = tiles[tile];
    c.options.scale = static_cast<scale_rule>(rule);
    c.options.nonfinite = draws_.draw_as<nonfinite>("non-finite policy", enum_count<nonfinite>);
    c.options.overflow = draws_.draw_as<overflow>("overflow", enum_count<overflow>);
    c.options.eps = draws_.draw("eps", 2) != 0 ? 1e-4f : 0.0f;
    const int k = bits[rounding_bits];
    if (k != 0) c.options.rounding = rounding::stochastic;
    c.options.random = {random(), random(), random() & ~std::uint64_t{15}, std::nullopt,
                        k == 0 ? 16 : k};
    c.plain = true;
    return c;
  }

  /// What no case of this round has together; empty if nothing.
  [[nodiscard]] std::string missing() const { return draws_.missing(); }

 private:
  even_draw draws_;
  std::uint64_t number_ = 0;
};

}  // namespace samebits::support
