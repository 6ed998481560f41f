// `fpinspect tensor --stats`: implementation.

#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/tensors/tensor_views.hpp"

namespace fpinspect {

// --- The range of scales -------------------------------------------------------------------------

namespace {

struct tiled_recipe {
  std::string_view recipe;  ///< name of the preset
  std::string_view what;    ///< of the tiles: "1x128 tiles"
};

constexpr std::array<tiled_recipe, 3> tiled_recipes = {{
    {"TE_BLOCK_2D", "128x128 tiles"},
    {"TE_BLOCK_1D", "1x128 tiles"},
    {"MXFP8_TE", "1x32 blocks"},
}};

struct scale_range : tiled_recipe {
  std::uint64_t tiles = 0;
  std::uint64_t zero_tiles = 0;  ///< all their codes are 0; their scales do not count below
  /// floor(log2(s)) of the smallest and the largest finite dequantization scale s.
  std::optional<int> smallest_log2 = {};
  std::optional<int> largest_log2 = {};
};

void count_scale(scale_range& range, double scale) {
  if (!std::isfinite(scale) || scale <= 0) return;
  const int exponent = exponent_of(scale);
  range.smallest_log2 = std::min(range.smallest_log2.value_or(exponent), exponent);
  range.largest_log2 = std::max(range.largest_log2.value_or(exponent), exponent);
}

/// Counts the scales of a matrix band by band, so that the codes stay in cache.
scale_range range_by(const tiled_recipe& recipe, const const_matrix_view& in,
                     const executor& where) {
  constexpr std::int64_t band_elements = std::int64_t{1} << 20;
  constexpr std::int64_t tile_rows = 128;  // of the tallest tiles
  const samebits::recipe& rules = find_recipe(recipe.recipe)->rules;
  const std::int64_t band_rows = (band_elements / in.cols / tile_rows + 1) * tile_rows;
  owned_matrix codes(format_id::e4m3, {std::min(band_rows, in.rows), in.cols});
  scale_range range = {recipe};
  for (std::int64_t row = 0; row < in.rows; row += band_rows) {
    const_matrix_view band = in;
    band.rows = codes.shape.rows = std::min(band_rows, in.rows - row);
    band.data =
        static_cast<const std::byte*>(in.data) + row * in.row_stride * storage_bytes(in.format);
    const matrix_shape tiles = scales_shape(band.rows, in.cols, rules.tile);
    owned_matrix scales(rules.scale_format, tiles);
    samebits::quantize(band, {.codes = codes.view(), .scales = scales.view()}, rules, where);
    std::vector<double> values(static_cast<std::size_t>(tiles.rows * tiles.cols));
    samebits::convert(scales.view(), view_of(values.data(), tiles.rows, tiles.cols));
    range.tiles += values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      if (is_zero_tile(codes.view(), rules.tile, at / tiles.cols, at % tiles.cols)) {
        ++range.zero_tiles;
      } else {
        count_scale(range, values[i]);
      }
    }
  }
  return range;
}

// --- The range of rows and columns ---------------------------------------------------------------

/// The amax of each row or column of a matrix.
struct channel_range {
  std::uint64_t channels = 0;
  std::uint64_t zero = 0;           ///< channels whose amax is 0
  std::uint64_t not_finite = 0;     ///< channels without a finite element
  double smallest = 0;              ///< non-zero amax; 0 if there is none
  double median = 0;                ///< the lower one of an even number of channels
  double largest = 0;               ///< the largest amax
  std::uint64_t largest_index = 0;  ///< the first channel that has it

  /// largest / smallest; nothing without a non-zero amax.
  [[nodiscard]] std::optional<double> spread() const {
    return smallest == 0 ? std::nullopt : std::optional(largest / smallest);
  }
};

/// The range of amaxes, of which -1 stands for a channel without a finite element; nothing without
/// channels.
std::optional<channel_range> range_of(std::span<const double> amaxes) {
  if (amaxes.empty()) return std::nullopt;
  channel_range range = {.channels = amaxes.size()};
  std::vector<double> sorted;
  for (const double amax : amaxes) {
    if (amax >= 0) sorted.push_back(amax);
    if (amax == 0) ++range.zero;
    if (amax > 0 && (range.smallest == 0 || amax < range.smallest)) range.smallest = amax;
  }
  range.not_finite = amaxes.size() - sorted.size();
  if (sorted.empty()) return range;
  const auto largest = std::ranges::max_element(amaxes);
  range.largest = *largest;
  range.largest_index = static_cast<std::uint64_t>(largest - amaxes.begin());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  range.median = *middle;
  return range;
}

// --- `fpinspect tensor --stats` ------------------------------------------------------------------

/// What --stats shows of a tensor whose elements are numbers.
struct statistics {
  cast_statistics elements;
  std::optional<channel_range> rows;     ///< of a matrix: leading dimensions merge into rows
  std::optional<channel_range> columns;  ///< of a matrix: the last dimension
  std::vector<scale_range> scales;
  std::string matrix;  ///< that of the scales, "[64, 576]", if the shape does not say it
};

statistics statistics_of(const shown_tensor& tensor, const executor& where) {
  constexpr std::uint64_t most = 1 << 22;  // rows or columns
  const bool matrix = tensor.info.shape.size() >= 2 && tensor.info.count != 0;
  const bool channels =
      has_columns(tensor.info, most) && tensor.info.count / tensor.info.shape.back() <= most;
  statistics result;
  result.elements = statistics_of(tensor,
                                  {.sums = true,
                                   .l1_norm = true,
                                   .std = true,
                                   .row_amax = channels,
                                   .column_amax = channels,
                                   .percentiles = true},
                                  where);
  result.rows = range_of(result.elements.row_amax);
  result.columns = range_of(result.elements.column_amax);
  if (matrix && is_quantizable(tensor.how.format)) {
    const matrix_shape shape = judged_matrix_of(tensor);
    if (shape != matrix_of(tensor.info)) result.matrix = shape_text(shape);
    const source_matrix in = matrix_of(tensor, shape);
    for (const tiled_recipe& recipe : tiled_recipes) {
      result.scales.push_back(range_by(recipe, in.view, where));
    }
  }
  return result;
}

/// log2(amax / min_nonzero).
std::optional<double> dynamic_range_log2(const cast_statistics& s) {
  return s.min_nonzero ? std::optional(std::log2(*s.amax) - std::log2(*s.min_nonzero))
                       : std::nullopt;
}

/// Percentages above their values.
std::string percentile_lines(const std::vector<double>& values) {
  if (values.empty()) return {};
  constexpr std::size_t width = 11;  // "-1.234e-05"
  std::string heading;
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    heading += right(cat(percentages[i], " %"), width);
    line += right(general(values[i], 4), width);
  }
  return cat("  percentiles\n", heading, "\n", line, "\n");
}

/// "  64 rows: amax 0.12 to 0.17 (1.4 x), median 0.15, max in 17"
std::string channel_line(const std::optional<channel_range>& range, std::string_view one,
                         std::string_view several) {
  if (!range) return {};
  const std::string head = cat("  ", range->channels, " ", range->channels == 1 ? one : several);
  const auto spread = range->spread();
  const std::string empty =
      range->not_finite == 0 ? "" : cat(", ", range->not_finite, " without a finite value");
  if (!spread) {
    return range->zero == 0 ? cat(head, ": no finite value\n") : cat(head, ": all 0", empty, "\n");
  }
  return cat(head, ": amax ", general(range->smallest, 3), " to ", general(range->largest, 3), " (",
             general(*spread, 3), " x), median ", general(range->median, 3), ", max in ",
             range->largest_index, range->zero == 0 ? "" : cat(", ", range->zero, " all 0"), empty,
             "\n");
}

std::string scale_line(const scale_range& range, const std::string& matrix) {
  const std::string head = left(cat("  scales of ", range.what), 26);
  if (!range.smallest_log2) return cat(head, "none\n");
  const std::string to =
      *range.smallest_log2 == *range.largest_log2
          ? power_text(*range.smallest_log2)
          : cat(power_text(*range.smallest_log2), " to ", power_text(*range.largest_log2));
  const std::string zero = range.zero_tiles == 0 ? "" : cat(", ", range.zero_tiles, " are zero");
  return cat(head, to, "   (", range.recipe, ", ", range.tiles,
             range.tiles == 1 ? " tile" : " tiles", matrix.empty() ? "" : cat(" of ", matrix), zero,
             ")\n");
}

std::string statistics_text(const statistics& all) {
  const cast_statistics& d = all.elements;
  const auto range = dynamic_range_log2(d);
  std::string text =
      cat("  min ", number_text(d.min), "   max ", number_text(d.max), "   mean ",
          number_text(d.mean), "   std ", number_text(d.std), "\n  zeros ", d.zeros, " (",
          percent(d.zeros, d.count), ")   NaN ", d.nan, "   Inf ", d.inf, "   L1 norm ",
          number_text(d.l1_norm), "   L2 norm ", number_text(d.l2_norm), "\n  amax ",
          number_text(d.amax), "   smallest non-zero ", number_text(d.min_nonzero),
          "   their ratio ", range ? cat("2^", fixed(*range, 1)) : "-", "\n");
  text += percentile_lines(d.percentiles);
  text += channel_line(all.rows, "row", "rows") + channel_line(all.columns, "column", "columns");
  for (const scale_range& one : all.scales) text += scale_line(one, all.matrix);
  return text;
}

json_value channels_json(const std::optional<channel_range>& range) {
  if (!range) return std::nullopt;
  return json_line({{"channels", range->channels},
                    {"zero", range->zero},
                    {"not_finite", range->not_finite},
                    {"smallest_amax", range->smallest},
                    {"median_amax", range->median},
                    {"largest_amax", range->largest},
                    {"largest", range->largest_index}});
}

json_value percentiles_json(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  json_object percentiles;
  for (std::size_t i = 0; i < values.size(); ++i) {
    percentiles.add(std::to_string(percentages[i]), values[i]);
  }
  return percentiles.on_one_line();
}

json_value scale_json(const scale_range& range) {
  return json_line({{"recipe", range.recipe},
                    {"tiles", range.tiles},
                    {"zero_tiles", range.zero_tiles},
                    {"smallest_log2", range.smallest_log2},
                    {"largest_log2", range.largest_log2}});
}

json_object json_of(const statistics& all) {
  const cast_statistics& d = all.elements;
  return extremes_json(d).add(json_object{{"dynamic_range_log2", dynamic_range_log2(d)},
                                          {"mean", d.mean},
                                          {"std", d.std},
                                          {"l1_norm", d.l1_norm},
                                          {"l2_norm", d.l2_norm},
                                          {"percentiles", percentiles_json(d.percentiles)},
                                          {"rows", channels_json(all.rows)},
                                          {"columns", channels_json(all.columns)},
                                          {"scales", json_rows(all.scales, scale_json)}});
}

}  // namespace

void write_tensor_statistics(std::span<const shown_tensor> tensors, const executor& where,
                             const session& s) {
  const std::uint64_t bytes = bytes_to_read(tensors);
  std::optional<progress> line(std::in_place, bytes, bytes);
  json_array all;
  std::string text;
  for (const shown_tensor& tensor : tensors) {
    json_value found = std::nullopt;
    std::string_view type;
    std::string lines = cat("  ", tensor.note, "\n");
    if (tensor.has_numbers()) {
      const statistics figures = statistics_of(tensor, where);
      found = json_of(figures);
      type = type_text(tensor.info, tensor.how);
      lines = statistics_text(figures);
      line->add(tensor.info.bytes);
    }
    all.add(tensor_json(tensor).add("statistics", found));
    text += cat(text.empty() ? "" : "\n", heading_text(tensor, type, s.term), "  ",
                number_of(tensor.info.count, "element"), "\n", lines);
  }
  line.reset();
  s.write({{"tensors", all}}, text);
}

}  // namespace fpinspect
