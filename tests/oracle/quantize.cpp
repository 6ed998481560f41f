// Quantization as loops over tiles and elements; every number in them is exact or rounded once.
#include "oracle/quantize.hpp"

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "oracle/convert.hpp"
#include "oracle/elementary.hpp"
#include "oracle/philox.hpp"
#include "oracle/specials.hpp"
#include "oracle/two_levels.hpp"

namespace samebits::oracle {
namespace {

void require_one_of(std::string_view argument, const format& f,
                    std::initializer_list<std::string_view> names) {
  if (std::find(names.begin(), names.end(), f.name) == names.end()) {
    throw std::invalid_argument("oracle: " + std::string(argument) + " is " + std::string(f.name));
  }
}

void require_code_format(std::string_view argument, const format& f) {
  require_one_of(argument, f, {"e4m3", "e5m2", "e2m1", "e2m3", "e3m2"});
}

void require_count(std::string_view argument, std::size_t count, std::uint64_t expected) {
  if (count != expected) {
    throw std::invalid_argument("oracle: " + std::string(argument) + " has " +
                                std::to_string(count) + " elements, expected " +
                                std::to_string(expected));
  }
}

void require_tiles(const tiling& t) {
  if (t.tile_rows == 0 || t.tile_columns == 0) {
    throw std::invalid_argument("oracle: tiles has a tile without elements");
  }
}

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

template <typename Element>
std::vector<Element> transposed(const std::vector<Element>& x, const grid& g) {
  std::vector<Element> result;
  for (std::uint64_t c = 0; c < g.columns; ++c) {
    for (std::uint64_t r = 0; r < g.rows; ++r) result.push_back(x[r * g.columns + c]);
  }
  return result;
}

/// rounds_beyond() for a format without Inf and NaN, whose overflow no policy shows: whether M and an
/// `excess` of so many last places of M rounds to more than M.
bool rounds_up(const cpp_rational& excess, rounding mode, const random_bits& bits) {
  if (excess <= 0) return false;
  if (mode == rounding::nearest_even) return 2 * excess >= 1;  // M is odd
  const cpp_int count = cpp_int(1) << bits.count;
  const cpp_rational scaled = excess * count;
  return numerator(scaled) / denominator(scaled) + bits.value >= count;
}

bool rounds_beyond_all_finite(const format& to, const exact_value& value, rounding mode,
                              const random_bits& bits) {
  if (value.kind == value_kind::infinite) return true;
  const cpp_rational m = abs(rational_of(decode(to, to.max_finite)));
  const cpp_rational below = abs(rational_of(decode(to, to.max_finite - 1)));
  return rounds_up((abs(rational_of(value)) - m) / (m - below), mode, bits);
}

/// Whether y rounds beyond max finite, told apart by casting under two policies: for an overflow
/// alone saturate gives max finite and ieee Inf or NaN.
bool rounds_beyond(const format& to, std::uint32_t y, rounding mode, const random_bits& bits) {
  const exact_value value = decode(fp32(), y);
  if (value.kind == value_kind::nan) return false;
  if (to.nan == nan_codes::none) return rounds_beyond_all_finite(to, value, mode, bits);
  const cast_rule ieee{mode, overflow::ieee};
  const cast_rule saturate{mode, overflow::saturate};
  return round_exact(to, value, ieee, bits) != round_exact(to, value, saturate, bits);
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

void require_quantizable(const format& from, const format& to, const quantize_rule& rule) {
  require_one_of("from", from, {"fp32", "bf16", "fp16"});
  require_code_format("to", to);
  require_valid(rule.scale);
  require_valid(rule.cast);
  if (rule.cast.rounding != rounding::nearest_even && rule.cast.rounding != rounding::stochastic) {
    throw std::invalid_argument("oracle: rule.cast.rounding is not nearest_even or stochastic");
  }
}

}  // namespace

std::uint32_t dequantized_value(const format& from, std::uint8_t code, std::uint32_t s) {
  const std::uint64_t value = convert(from, fp32(), code, {});
  return multiply32(static_cast<std::uint32_t>(value), s);
}

quantized quantize(const format& from, const format& to, std::span<const std::uint32_t> codes,
                   const tiling& tiles, const quantize_rule& given) {
  quantize_rule rule = given;
  require_quantizable(from, to, rule);
  require_tiles(tiles);
  require_count("codes", codes.size(), tiles.rows * tiles.columns);

  std::vector<std::uint32_t> x;
  for (const std::uint32_t code : codes) {
    x.push_back(static_cast<std::uint32_t>(convert(from, fp32(), code, {})));
  }

  const grid scale_grid = tiles_of(tiles);
  if (!rule.inverse_scales.empty()) {
    require_count("inverse_scales", rule.inverse_scales.size(),
                  scale_grid.rows * scale_grid.columns);
  }
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
  result.codes_transposed = transposed(result.codes, {tiles.rows, tiles.columns});
  result.scales_transposed = transposed(result.scales, scale_grid);
  result.statistics = statistics_of(to, elements);
  return result;
}

std::vector<std::uint32_t> dequantize(const format& from, const format& to,
                                      std::span<const std::uint8_t> codes,
                                      std::span<const std::uint32_t> scales, const tiling& tiles,
                                      const cast_rule& rule, scale_rule by,
                                      std::uint32_t tensor_scale) {
  require_code_format("from", from);
  require_one_of("to", to, {"fp32", "bf16", "fp16"});
  require_valid(rule);
  if (rule.rounding == rounding::stochastic) {
    throw std::invalid_argument(
        "oracle: rule.rounding is stochastic, which has no random bits here");
  }
  require_tiles(tiles);
  const grid scale_grid = tiles_of(tiles);
  require_count("codes", codes.size(), tiles.rows * tiles.columns);
  require_count("scales", scales.size(), scale_grid.rows * scale_grid.columns);

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
