// The usual errors of quantizers: other options, wrong scales, and some wrong tiles.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <utility>

#include "engine/core/scaled_matrix.hpp"
#include "engine/explain/errors.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

using tested = quantizer_under_test;
constexpr std::size_t scales = 0, codes = 1;  // results

/// A matrix before its elements are cast.
support::scaled_matrix scaled(const tested& q, const trial& in,
                              const support::scaling_variation& variation = {}) {
  guarded_array elements(static_cast<std::size_t>(storage_bytes(q.from)), 0, in.codes.size());
  elements.store(in.codes);
  const void* const source = elements.elements();
  return support::scale_by_definition(view_of_codes(q.from, source, in.rows, in.cols), q.to,
                                      q.options, variation);
}
support::scaled_matrix scaled(tested q, const trial& in, nonfinite policy) {
  q.options.nonfinite = policy;
  return scaled(q, in);
}

float float_of(std::uint32_t word) { return std::bit_cast<float>(word); }

/// The scales and codes that a quantizer stores of the scaled matrix m. If the tiles of m have another
/// size, the scale of a tile is that of its first element. cast(i) is the code of element i.
template <class Cast>
prediction stored(const tested& q, const trial& in, const support::scaled_matrix& m,
                  const Cast& cast) {
  prediction result(2);
  const matrix_shape tile = tile_extent(in, q.options.tile);
  for (std::int64_t row = 0; row < in.rows; row += tile.rows) {
    for (std::int64_t col = 0; col < in.cols; col += tile.cols) {
      const std::size_t first = m.tile_of[static_cast<std::size_t>(row * in.cols + col)];
      const std::uint32_t s = m.scales[first].dequantization_scale;
      result[scales].push_back(convert_code(format_id::fp32, q.scale_format, s).code);
    }
  }
  for (std::size_t i = 0; i < m.elements.size(); ++i) result[codes].push_back(cast(i));
  return result;
}

std::uint64_t cast_from(const tested& q, format_id from, std::uint64_t code) {
  const quantize_options& o = q.options;
  return convert_code(from, q.to, code, {o.rounding, o.overflow, o.nan}).code;
}

// ---- Rows of the table ----

class table {
 public:
  explicit table(const tested& q) : q_(q) {}

  /// Adds a quantizer with another setting, which change(quantizer) makes.
  template <class Change>
  void add_setting(std::string sentence, const Change& change) {
    tested other = q_;
    change(other);
    const specification what = specification_of(other);
    add(std::move(sentence), [what](const seen_call& call) {
      return std::optional(predict(what.results_of(what.reference, call.in)));
    });
  }
  /// Adds a quantizer that scales by scale(call), before each element is cast.
  template <class Scale>
  void add_scaling(std::string sentence, const Scale& scale, bool only_alone = false) {
    if (q_.options.rounding == rounding::stochastic) return;
    const auto of = [q = q_, scale](const seen_call& call) {
      const support::scaled_matrix m = scale(call.in);
      return std::optional(stored(q, call.in, m, [&](std::size_t i) {
        return cast_from(q, format_id::fp32, m.elements[i]);
      }));
    };
    rows_.push_back({std::move(sentence), of, only_alone});
  }
  void add_variation(std::string sentence, const support::scaling_variation& variation,
                     bool only_alone = false) {
    add_scaling(
        std::move(sentence),
        [q = q_, variation](const trial& in) { return scaled(q, in, variation); }, only_alone);
  }
  /// Adds an error of the scales alone: scale(call, i) is scale i, or nothing.
  template <class Scale>
  void add_scales(std::string sentence, const Scale& scale) {
    add(std::move(sentence), [scale](const seen_call& call) {
      prediction result = predict(call.expected);
      for (std::size_t i = 0; i < result[scales].size(); ++i) result[scales][i] = scale(call, i);
      return std::optional(std::move(result));
    });
  }
  /// Adds an error of some tiles alone: affected(call)[t] says whether tile t may be wrong.
  template <class Affected>
  void add_tiles_where(std::string sentence, const Affected& affected) {
    add(std::move(sentence), [q = q_, affected](const seen_call& call) {
      prediction result = predict(call.expected);
      const std::vector<bool> wrong = affected(call);
      for (std::size_t t = 0; t < wrong.size(); ++t) {
        if (wrong[t]) result[scales][t] = call.got[scales][t];
      }
      const std::vector<std::size_t> tiles = scaled(q, call.in, q.options.nonfinite).tile_of;
      for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (wrong[tiles[i]]) result[codes][i] = call.got[codes][i];
      }
      return std::optional(std::move(result));
    });
  }
  void add(std::string sentence, decltype(candidate::of) of) {
    rows_.push_back({std::move(sentence), std::move(of)});
  }

  [[nodiscard]] const tested& quantizer() const { return q_; }
  [[nodiscard]] std::vector<candidate> rows() { return std::move(rows_); }

 private:
  tested q_;
  std::vector<candidate> rows_;
};

std::string text_of(const tile_shape& tile) {
  const auto size = [](std::int64_t n) { return n == 0 ? std::string("all") : std::to_string(n); };
  return size(tile.rows) + " x " + size(tile.cols);
}

std::string text_of(float x) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(x));
  return text;
}

void add_eps(table& rows) {
  const quantize_options& asked = rows.quantizer().options;
  if (asked.eps != 0) {
    const auto without = [](tested& q) { q.options.eps = 0; };
    rows.add_setting("eps missing: small amaxes are not raised", without);
    if (asked.scale == scale_rule::div) {
      tested plain = rows.quantizer();
      without(plain);
      rows.add_scaling("eps missing, and the scale of a tile of zeros is computed like any other",
                       [plain](const trial& in) { return scaled(plain, in, {.plain = true}); });
    }
  }
  for (const float eps : {1e-4f, 1e-5f, 1e-6f, 1e-8f, 1e-10f, 1e-12f}) {
    if (eps == asked.eps) continue;
    rows.add_setting("eps is " + text_of(eps) + " instead of " + text_of(asked.eps),
                     [eps](tested& q) { q.options.eps = eps; });
  }
}

/// The element as a maximum of signed elements sees it: a negative number counts as 0.
std::uint32_t with_sign(std::uint32_t x) {
  const bool negative_number = x >> 31 == 1 && (x & 0x7FFFFFFF) <= 0x7F800000;
  return negative_number ? 0 : x;
}

void add_amaxes(table& rows) {
  const tested& q = rows.quantizer();
  rows.add_variation("the maximum of the elements instead of their magnitudes",
                     {.seen = with_sign});
  if (q.to == format_id::e4m3) {
    rows.add_variation("the scale is made for 240, the largest number of e4m3fnuz",
                       {.made_for = format_id::e4m3fnuz});
  }
  const tile_shape t = q.options.tile;
  const std::pair<const char*, tile_shape> others[] = {
      {"tiles of half the size",
       {std::max<std::int64_t>(t.rows / 2, 1), std::max<std::int64_t>(t.cols / 2, 1)}},
      {"tiles of double the size",
       {t.rows > 1 ? 2 * t.rows : t.rows, t.cols > 1 ? 2 * t.cols : t.cols}},
      {"the amax of the whole row instead of the tile", {t.rows, 0}},
      {"the amax of the whole tensor instead of the tile", {0, 0}}};
  for (const auto& [sentence, tile] : others) {
    if (tile == t || (t.rows == 0 && t.cols == 0)) continue;
    tested other = q;
    other.options.tile = tile;
    rows.add_scaling(sentence, [other](const trial& in) { return scaled(other, in); });
  }
}

void add_scale_settings(table& rows) {
  const quantize_options& asked = rows.quantizer().options;
  constexpr float inf = std::numeric_limits<float>::infinity();
  if (asked.upper_bound != inf) {
    rows.add_setting("upper bound of the amax missing",
                     [=](tested& q) { q.options.upper_bound = inf; });
  }
  for (int i = 0; i < one_level_scale_rules; ++i) {
    const auto rule = static_cast<scale_rule>(i);
    const bool fits_format =
        rows.quantizer().scale_format == format_id::fp32 || is_power_of_two(rule);
    if (rule == asked.scale || !fits_format) continue;
    rows.add_setting(
        "scale rule " + std::string(name(rule)) + " instead of " + std::string(name(asked.scale)),
        [rule](tested& q) { q.options.scale = rule; });
  }
  for (int i = 0; i < one_level_scale_rules; ++i) {
    const auto rule = static_cast<scale_rule>(i);
    if (rule == asked.scale) continue;
    rows.add_variation("scales by " + std::string(name(asked.scale)) + ", but elements scaled as " +
                           std::string(name(rule)) + " does",
                       {.element_rule = rule}, true);
  }
}

/// Adds elements that are not rounded to binary32 before they are cast.
void add_exact_elements(table& rows) {
  if (rows.quantizer().options.rounding == rounding::stochastic) return;
  rows.add("the scaled element is not rounded to fp32 before the cast",
           [q = rows.quantizer()](const seen_call& call) {
             const support::scaled_matrix m = scaled(q, call.in);
             return std::optional(stored(q, call.in, m, [&](std::size_t i) {
               const double x = float_of(m.inputs[i]);
               const double by = float_of(m.scales[m.tile_of[i]].factor);
               const double y = q.options.scale == scale_rule::div ? x / by : x * by;
               return cast_from(q, format_id::fp64, std::bit_cast<std::uint64_t>(y));
             }));
           });
}

void add_tiles(table& rows) {
  const tile_shape asked = rows.quantizer().options.tile;
  std::vector<tile_shape> tiles{{asked.cols, asked.rows}};
  for (const std::int64_t g : {16, 32, 64, 128, 256}) {
    tiles.insert(tiles.end(), {{1, g}, {g, 1}, {g, g}});
  }
  tiles.insert(tiles.end(), {{1, 0}, {0, 1}, {0, 0}});
  for (auto tile = tiles.begin(); tile != tiles.end(); ++tile) {
    if (*tile == asked || std::find(tiles.begin(), tile, *tile) != tile) continue;
    const std::string transposed = tile == tiles.begin() ? "tile transposed: " : "";
    rows.add_setting(transposed + "tiles of " + text_of(*tile) + " instead of " + text_of(asked),
                     [other = *tile](tested& q) { q.options.tile = other; });
  }
}

void add_policies(table& rows) {
  const quantize_options& asked = rows.quantizer().options;
  for (int i = 0; i < enum_count<nonfinite>; ++i) {
    const auto other = static_cast<nonfinite>(i);
    if (other == asked.nonfinite) continue;
    rows.add_setting("NaN and Inf in a tile as under nonfinite::" + std::string(name(other)) +
                         " instead of " + std::string(name(asked.nonfinite)),
                     [other](tested& q) { q.options.nonfinite = other; });
  }
  const bool flt_max = asked.scale_overflow == scale_overflow::flt_max;
  const auto other = flt_max ? scale_overflow::input_max : scale_overflow::flt_max;
  rows.add_setting("an infinite S replaced as under scale_overflow::" + std::string(name(other)),
                   [other](tested& q) { q.options.scale_overflow = other; });
}

/// The rounded reciprocal of a scale.
std::uint64_t inverse_of(format_id format, std::uint64_t scale) {
  const auto s = static_cast<float>(decode_double(format, scale));
  return convert_code(format_id::fp32, format, std::bit_cast<std::uint32_t>(1.0f / s)).code;
}

/// Adds scales moved by `by` tiles. A call with a single tile is not compared: it has no
/// neighbouring tile.
void add_neighbour_scales(table& rows, const char* sentence, std::ptrdiff_t by) {
  rows.add(sentence, [by](const seen_call& call) -> std::optional<prediction> {
    const auto count = static_cast<std::ptrdiff_t>(call.expected[scales].size());
    if (count < 2) return std::nullopt;
    prediction result = predict(call.expected);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      auto& scale = result[scales][static_cast<std::size_t>(i)];
      scale.reset();
      if (i + by < 0 || i + by >= count) continue;
      scale = call.expected[scales][static_cast<std::size_t>(i + by)];
    }
    return result;
  });
}

void add_wrong_scales(table& rows) {
  const format_id format = rows.quantizer().scale_format;
  rows.add_scales("scales stored as their inverse (S instead of s)",
                  [format](const seen_call& call, std::size_t i) {
                    const std::uint64_t got = call.got[scales][i];
                    const std::uint64_t s = call.expected[scales][i];  // may be a reciprocal itself
                    return inverse_of(format, got) == s ? got : inverse_of(format, s);
                  });
  for (const bool up : {true, false}) {
    if (format != format_id::fp32) break;
    rows.add_scales(
        "the stored scale is rounded " + std::string(up ? "up" : "down") + " to a power of two",
        [up](const seen_call& call, std::size_t i) {
          const auto s = static_cast<std::uint32_t>(call.expected[scales][i]);
          const bool stays = (s & 0x7FFFFF) == 0 || s >> 23 >= 0xFF || s >> 23 == 0;
          const std::uint32_t power = s >> 23 << 23;
          return std::uint64_t{stays ? s : power + (up ? 1u << 23 : 0u)};
        });
  }
  const tile_shape tile = rows.quantizer().options.tile;
  rows.add_scales("scales stored column by column: the matrix of scales is transposed",
                  [tile](const seen_call& call, std::size_t i) {
                    const matrix_shape s = scales_shape(call.in.rows, call.in.cols, tile);
                    const auto n = static_cast<std::int64_t>(i);
                    const std::int64_t from = n % s.rows * s.cols + n / s.rows;
                    return call.expected[scales][static_cast<std::size_t>(from)];
                  });
  add_neighbour_scales(rows, "scales of the next tile", 1);
  add_neighbour_scales(rows, "scales of the tile before", -1);
  rows.add_scales("some scales are not written", [format](const seen_call& call, std::size_t i) {
    const std::uint64_t before = unwritten_code(call.got[scales].size(), format);
    return call.got[scales][i] == before ? before : call.expected[scales][i];
  });
}

void add_affected_tiles(table& rows) {
  const tested& q = rows.quantizer();
  const auto by_amax = [q](auto condition) {  // with this policy, amaxes show every NaN and Inf
    return [=](const seen_call& call) {
      std::vector<bool> result;
      const support::scaled_matrix m = scaled(q, call.in, nonfinite::propagate);
      for (const std::int32_t amax : m.amaxes) {
        result.push_back(condition(amax));
      }
      return result;
    };
  };
  rows.add_tiles_where("only tiles of zeros are wrong",
                       by_amax([](std::int32_t amax) { return amax == 0; }));
  rows.add_tiles_where(
      "only tiles cut off at the edge of the matrix are wrong", [q](const seen_call& call) {
        const matrix_shape tile = tile_extent(call.in, q.options.tile);
        std::vector<bool> result;
        for (std::int64_t row = 0; row < call.in.rows; row += tile.rows) {
          for (std::int64_t col = 0; col < call.in.cols; col += tile.cols) {
            result.push_back(row + tile.rows > call.in.rows || col + tile.cols > call.in.cols);
          }
        }
        return result;
      });
  rows.add_tiles_where("only tiles with NaN or Inf are wrong",
                       by_amax([](std::int32_t amax) { return amax >= 0x7F800000; }));
  rows.add("the scale of a tile of zeros is 0 instead of 1", [q](const seen_call& call) {
    prediction result = predict(call.expected);
    const support::scaled_matrix m = scaled(q, call.in, nonfinite::propagate);
    for (std::size_t t = 0; t < m.amaxes.size(); ++t) {
      const bool one = decode_double(q.scale_format, call.expected[scales][t]) == 1;
      if (m.amaxes[t] == 0 && one) result[scales][t] = 0;
    }
    return std::optional(std::move(result));
  });
}

std::vector<candidate> quantizer_errors(const quantizer_under_test& quantizer) {
  table rows(quantizer);
  add_scale_settings(rows);
  add_eps(rows);
  add_amaxes(rows);
  add_tiles(rows);
  add_policies(rows);
  add_exact_elements(rows);
  add_wrong_scales(rows);
  add_affected_tiles(rows);
  return rows.rows();
}

/// The casts of calls of a quantizer: conversions of the scaled elements from fp32, which the
/// definition in numerics/ gives. Empty if the random bits of calls are not those of one row.
std::vector<seen_call> casts_of(const quantizer_under_test& quantizer,
                                const std::vector<seen_call>& calls) {
  std::vector<seen_call> casts;
  if (quantizer.options.random.pitch) return casts;
  for (const seen_call& call : calls) {
    const auto y = scaled(quantizer, call.in, quantizer.options.nonfinite).elements;
    casts.push_back({row_of({y.begin(), y.end()}), {call.got[codes]}, {call.expected[codes]}});
  }
  return casts;
}

bool all_scales_are_right(const runner& calls) {
  for (const seen_call& call : calls.seen()) {
    for (std::size_t i = 0; i < call.got[scales].size(); ++i) {
      if (!calls.what().is_right(scales, call.got[scales][i], call.expected[scales][i])) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

explanation explained(const quantizer_under_test& quantizer, const runner& calls) {
  explanation why = explain(calls.what(), calls.seen(), quantizer_errors(quantizer));
  if (!all_scales_are_right(calls)) return why;
  const quantize_options& o = quantizer.options;
  const conversion_under_test cast{.from = format_id::fp32,
                                   .to = quantizer.to,
                                   .rule = {o.rounding, o.overflow, o.nan},
                                   .random = o.random,
                                   .nan = quantizer.nan};
  std::vector<candidate> errors = conversion_errors(cast);
  std::erase_if(errors, [](const candidate& c) { return c.only_alone; });  // tails of whole calls
  std::vector<std::string> sentences =
      explain(specification_of(cast), casts_of(quantizer, calls.seen()), errors).sentences;
  for (std::string& s : sentences) s = "right scales; codes: " + s;
  why.sentences.insert(why.sentences.begin(), sentences.begin(), sentences.end());
  return why;
}

}  // namespace samebits::testkit
