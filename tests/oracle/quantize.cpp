// Quantization as loops over tiles and elements; every number in them is exact or rounded once.
#include "oracle/quantize.hpp"

#include <algorithm>
#include <cstddef>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/philox.hpp"
#include "oracle/two_levels.hpp"

namespace samebits::oracle {
namespace {

std::uint64_t ceil_quotient(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

struct grid {
  std::uint64_t rows;
  std::uint64_t columns;
};

grid tiles_of(const tiling& t) {
  return {ceil_quotient(t.rows, t.tile_rows), ceil_quotient(t.columns, t.tile_columns)};
}

/// The existing elements of tile (i, j).
std::vector<std::uint32_t> elements_of(const std::vector<std::uint32_t>& x, const tiling& t,
                                       std::uint64_t i, std::uint64_t j) {
  std::vector<std::uint32_t> elements;
  const std::uint64_t first_row = i * t.tile_rows;
  const std::uint64_t first_column = j * t.tile_columns;
  for (std::uint64_t r = first_row; r < t.rows && r - first_row < t.tile_rows; ++r) {
    for (std::uint64_t c = first_column; c < t.columns && c - first_column < t.tile_columns; ++c) {
      elements.push_back(x[r * t.columns + c]);
    }
  }
  return elements;
}

/// Whether y rounds beyond max finite: an infinity does, a NaN does not.
bool rounds_beyond(const format& to, std::uint32_t y, rounding mode, const random_bits& bits) {
  const exact_value value = decode(fp32(), y);
  return value.kind == value_kind::infinite || round_with_flags(to, value, {mode}, bits).overflow;
}

quantized_element quantize_element(const format& to, const quantize_rule& rule,
                                   const tile_scale& scale, std::uint32_t x,
                                   const random_bits& bits) {
  quantized_element e;
  e.x = x;
  const scale_rule by = rule.inverse_scales.empty() ? rule.scale.rule : scale_rule::te;
  e.y = scaled(by, scale, x);
  e.code = static_cast<std::uint8_t>(convert(fp32(), to, e.y, rule.cast, bits));
  e.overflowed = rounds_beyond(to, e.y, rule.cast.rounding, bits);
  e.dequantized =
      dequantized_value(to, e.code, full_scale(by, to, rule.scale.tensor_scale, scale.s));
  return e;
}

}  // namespace

std::uint32_t dequantized_value(const format& from, std::uint8_t code, std::uint32_t s) {
  const std::uint64_t value = convert(from, fp32(), code, {});
  return multiply32(static_cast<std::uint32_t>(value), s);
}

quantized quantize(const format& from, const format& to, std::span<const std::uint32_t> codes,
                   const tiling& tiles, const quantize_rule& given) {
  quantize_rule rule = given;
  std::vector<std::uint32_t> x;
  for (const std::uint32_t code : codes) {
    x.push_back(static_cast<std::uint32_t>(convert(from, fp32(), code, {})));
  }

  const grid scale_grid = tiles_of(tiles);
  const scale_rule by = rule.inverse_scales.empty() ? rule.scale.rule : scale_rule::te;
  if (is_two_level(by)) {
    const std::uint32_t amax = amax_left(x, rule.scale.nonfinite);
    rule.scale.tensor_scale = rule.tensor_scale.value_or(tensor_scale_of(by, to, amax));
  }
  const bool has_e8m0 = scales_are_powers_of_two(by);
  std::vector<tile_scale> scales;
  quantized result;
  result.tensor_scale = rule.scale.tensor_scale;
  for (std::uint64_t i = 0; i < scale_grid.rows; ++i) {
    for (std::uint64_t j = 0; j < scale_grid.columns; ++j) {
      const std::vector<std::uint32_t> elements = elements_of(x, tiles, i, j);
      const auto tile_columns =
          tiles.tile_columns == 1
              ? std::max<std::size_t>(1, elements.size())  // as one row
              : static_cast<std::size_t>(
                    std::min(tiles.tile_columns, tiles.columns - j * tiles.tile_columns));
      scales.push_back(rule.inverse_scales.empty()
                           ? scale_of_tile(rule.scale, to, elements, tile_columns)
                           : scale_of_inverse(rule.inverse_scales[scales.size()]));
      result.scales.push_back(scales.back().s);
      if (has_e8m0) result.e8m0.push_back(e8m0_of_tile(rule.scale, to, elements));
    }
  }

  std::vector<quantized_element> elements;
  for (std::uint64_t r = 0; r < tiles.rows; ++r) {
    for (std::uint64_t c = 0; c < tiles.columns; ++c) {
      const std::uint64_t tile = r / tiles.tile_rows * scale_grid.columns + c / tiles.tile_columns;
      random_bits bits{0, rule.random.bits};
      if (rule.cast.rounding == rounding::stochastic) {
        const std::uint64_t index = element_index(rule.random, r, c, tiles.columns);
        bits.value = random_word(rule.random.seed, rule.random.stream, index, rule.random.bits);
      }
      elements.push_back(quantize_element(to, rule, scales[tile], x[r * tiles.columns + c], bits));
      result.codes.push_back(elements.back().code);
    }
  }
  result.statistics = statistics_of(to, elements);
  return result;
}

std::vector<std::uint32_t> dequantize(const format& from, const format& to,
                                      std::span<const std::uint8_t> codes,
                                      std::span<const std::uint32_t> scales, const tiling& tiles,
                                      const cast_rule& rule, scale_rule by,
                                      std::uint32_t tensor_scale) {
  const grid scale_grid = tiles_of(tiles);
  std::vector<std::uint32_t> result;
  for (std::uint64_t r = 0; r < tiles.rows; ++r) {
    for (std::uint64_t c = 0; c < tiles.columns; ++c) {
      const std::uint64_t tile = r / tiles.tile_rows * scale_grid.columns + c / tiles.tile_columns;
      const std::uint32_t y = dequantized_value(from, codes[r * tiles.columns + c],
                                                full_scale(by, from, tensor_scale, scales[tile]));
      result.push_back(static_cast<std::uint32_t>(convert(fp32(), to, y, rule)));
    }
  }
  return result;
}

}  // namespace samebits::oracle
