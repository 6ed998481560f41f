// The table of usual errors of quantizers.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <utility>

#include "guarded_array.hpp"
#include "quantize_explain.hpp"
#include "samebits/scalar.hpp"
#include "scaled_elements.hpp"

namespace samebits::testkit {
namespace {

using table = std::vector<quantize_candidate>;

std::string text_of(const tile_shape& tile) {
  const auto size = [](std::int64_t n) { return n == 0 ? std::string("all") : std::to_string(n); };
  return size(tile.rows) + " x " + size(tile.cols);
}

// ---- Other options ----

/// Adds a quantizer with other options.
void add_options(table& rows, std::string sentence, const quantizer_under_test& other) {
  rows.push_back({std::move(sentence), [other](const seen_quantize_call& call) {
                    return std::optional(quantized_by(other, call.in));
                  }});
}

void add_scale_rules(table& rows, const quantizer_under_test& q) {
  for (int i = 0; i < enum_count<scale_rule>; ++i) {
    quantizer_under_test other = q;
    other.options.scale = static_cast<scale_rule>(i);
    const bool fits_format =
        q.scale_format == format_id::fp32 || is_power_of_two(other.options.scale);
    if (other.options.scale == q.options.scale || !fits_format) continue;
    add_options(rows,
                "scale rule " + std::string(name(other.options.scale)) + " instead of " +
                    std::string(name(q.options.scale)),
                other);
  }
}

void add_bounds(table& rows, const quantizer_under_test& q) {
  quantizer_under_test other = q;
  other.options.eps = 0;
  if (q.options.eps != 0) add_options(rows, "eps missing: small amaxes are not raised", other);
  other = q;
  other.options.upper_bound = std::numeric_limits<float>::infinity();
  if (q.options.upper_bound != other.options.upper_bound) {
    add_options(rows, "upper bound of the amax missing", other);
  }
}

void add_tiles(table& rows, const quantizer_under_test& q) {
  const tile_shape asked = q.options.tile;
  std::vector<tile_shape> tiles{{asked.cols, asked.rows}};
  for (const std::int64_t g : {16, 32, 64, 128, 256}) {
    tiles.insert(tiles.end(), {{1, g}, {g, 1}, {g, g}});
  }
  tiles.insert(tiles.end(), {{1, 0}, {0, 1}, {0, 0}});
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (tiles[i] == asked ||
        std::find(tiles.begin(), tiles.begin() + static_cast<std::ptrdiff_t>(i), tiles[i]) !=
            tiles.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;
    }
    quantizer_under_test other = q;
    other.options.tile = tiles[i];
    const std::string transposed = i == 0 ? "tile transposed: " : "";
    add_options(rows,
                transposed + "tiles of " + text_of(tiles[i]) + " instead of " + text_of(asked),
                other);
  }
}

void add_policies(table& rows, const quantizer_under_test& q) {
  for (int i = 0; i < enum_count<nonfinite>; ++i) {
    quantizer_under_test other = q;
    other.options.nonfinite = static_cast<nonfinite>(i);
    if (other.options.nonfinite == q.options.nonfinite) continue;
    add_options(
        rows,
        "NaN and Inf in a tile as under nonfinite::" + std::string(name(other.options.nonfinite)) +
            " instead of " + std::string(name(q.options.nonfinite)),
        other);
  }
  quantizer_under_test other = q;
  const bool flt_max = q.options.scale_overflow == scale_overflow::flt_max;
  other.options.scale_overflow = flt_max ? scale_overflow::input_max : scale_overflow::flt_max;
  add_options(rows,
              "an infinite S replaced as under scale_overflow::" +
                  std::string(name(other.options.scale_overflow)),
              other);
}

// ---- Right codes, other scales ----

/// Adds an error of the scales alone: `scale` returns scale i of a call.
template <class Scale>
void add_scales(table& rows, const char* sentence, Scale scale) {
  rows.push_back({sentence, [scale](const seen_quantize_call& call) {
                    quantized_codes result = call.expected;
                    for (std::size_t i = 0; i < result.scales.size(); ++i) {
                      result.scales[i] = scale(call, i);
                    }
                    return std::optional(result);
                  }});
}

/// Returns the rounded reciprocal of a scale.
std::uint64_t inverse_of(format_id format, std::uint64_t scale) {
  const auto s = static_cast<float>(decode_double(format, scale));
  return convert_code(format_id::fp32, format, std::bit_cast<std::uint32_t>(1.0f / s)).code;
}

/// Adds scales moved by `by` tiles. A call with a single tile is not compared: it has no
/// neighbouring tile.
void add_neighbour_scales(table& rows, const char* sentence, std::ptrdiff_t by) {
  rows.push_back({sentence, [by](const seen_quantize_call& call) -> std::optional<quantized_codes> {
                    const auto count = static_cast<std::ptrdiff_t>(call.expected.scales.size());
                    if (count < 2) return std::nullopt;
                    quantized_codes result = {call.expected.codes, call.got.scales};
                    for (std::ptrdiff_t i = 0; i < count; ++i) {
                      if (i + by < 0 || i + by >= count) continue;
                      result.scales[static_cast<std::size_t>(i)] =
                          call.expected.scales[static_cast<std::size_t>(i + by)];
                    }
                    return result;
                  }});
}

void add_wrong_scales(table& rows, const quantizer_under_test& q) {
  const format_id format = q.scale_format;
  add_scales(rows, "scales stored as their inverse (S instead of s)",
             [format](const seen_quantize_call& call, std::size_t i) {
               const std::uint64_t got = call.got.scales[i];
               const std::uint64_t s = call.expected.scales[i];  // may itself be a reciprocal
               return inverse_of(format, got) == s ? got : inverse_of(format, s);
             });
  const tile_shape tile = q.options.tile;
  add_scales(rows, "scales stored column by column: the matrix of scales is transposed",
             [tile](const seen_quantize_call& call, std::size_t i) {
               const matrix_shape s = scales_shape(call.in.rows, call.in.cols, tile);
               const auto n = static_cast<std::int64_t>(i);
               const std::int64_t from = n % s.rows * s.cols + n / s.rows;
               return call.expected.scales[static_cast<std::size_t>(from)];
             });
  add_neighbour_scales(rows, "scales of the next tile", 1);
  add_neighbour_scales(rows, "scales of the tile before", -1);
  add_scales(
      rows, "some scales are not written", [format](const seen_quantize_call& call, std::size_t i) {
        const std::uint64_t before =
            std::to_integer<std::uint64_t>(fill_of(call.got.scales.size())) * 0x0101010101010101u >>
            (64 - spec_of(format).storage_bits);
        return call.got.scales[i] == before ? before : call.expected.scales[i];
      });
}

// ---- Some tiles wrong, all others right ----

/// Adds an error of some tiles alone: `affected(call)` says for each tile whether it may be wrong.
template <class Affected>
void add_tiles_where(table& rows, const quantizer_under_test& q, const char* sentence,
                     Affected affected) {
  rows.push_back({sentence, [q, affected](const seen_quantize_call& call) {
                    quantized_codes result = call.expected;
                    const std::vector<bool> wrong = affected(call);
                    for (std::size_t t = 0; t < wrong.size(); ++t) {
                      if (wrong[t]) result.scales[t] = call.got.scales[t];
                    }
                    for (std::size_t i = 0; i < result.codes.size(); ++i) {
                      const std::size_t t = tile_of(q, call.in, i);
                      if (wrong[t]) result.codes[i] = call.got.codes[i];
                    }
                    return std::optional(result);
                  }});
}

/// Returns for each tile whether its amax satisfies a condition.
template <class Condition>
std::vector<bool> tiles_by_amax(const quantizer_under_test& q, const code_matrix& in,
                                Condition condition) {
  std::vector<bool> result;
  for (const std::int32_t amax : tile_amaxes(q, in)) result.push_back(condition(amax));
  return result;
}

/// Returns for each tile whether the edge of the matrix cuts it off.
std::vector<bool> cut_tiles(const quantizer_under_test& q, const code_matrix& in) {
  const matrix_shape tile = tile_extent(in, q.options.tile);
  std::vector<bool> result;
  for (std::int64_t row = 0; row < in.rows; row += tile.rows) {
    for (std::int64_t col = 0; col < in.cols; col += tile.cols) {
      result.push_back(row + tile.rows > in.rows || col + tile.cols > in.cols);
    }
  }
  return result;
}

void add_affected_tiles(table& rows, const quantizer_under_test& q) {
  quantizer_under_test seeing = q;  // with its options, amaxes show every NaN and Inf
  seeing.options.nonfinite = nonfinite::propagate;
  add_tiles_where(rows, q, "only tiles of zeros are wrong",
                  [seeing](const seen_quantize_call& call) {
                    return tiles_by_amax(seeing, call.in, [](std::int32_t a) { return a == 0; });
                  });
  add_tiles_where(rows, q, "only tiles cut off at the edge of the matrix are wrong",
                  [q](const seen_quantize_call& call) { return cut_tiles(q, call.in); });
  add_tiles_where(
      rows, q, "only tiles with NaN or Inf are wrong", [seeing](const seen_quantize_call& call) {
        return tiles_by_amax(seeing, call.in, [](std::int32_t a) { return a >= 0x7F800000; });
      });
}

}  // namespace

std::vector<quantize_candidate> quantize_candidates(const quantizer_under_test& quantizer) {
  table rows;
  add_bounds(rows, quantizer);
  add_scale_rules(rows, quantizer);
  add_tiles(rows, quantizer);
  add_policies(rows, quantizer);
  add_wrong_scales(rows, quantizer);
  add_affected_tiles(rows, quantizer);
  return rows;
}

}  // namespace samebits::testkit
