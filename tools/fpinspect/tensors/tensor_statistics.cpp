// `fpinspect tensor --stats`: implementation.
#include "fpinspect/tensors/tensor_statistics.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/json_writer.hpp"
#include "fpinspect/output/progress.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/quantize/scale_range.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "fpinspect/verdict/roles.hpp"

namespace fpinspect {
namespace {

/// What --stats shows of a tensor whose elements are numbers.
struct statistics {
  samebits::cast_statistics elements;
  std::optional<channel_range> rows;     ///< of a matrix: leading dimensions merge into rows
  std::optional<channel_range> columns;  ///< of a matrix: the last dimension
  std::vector<scale_range> scales;
  std::string matrix;  ///< that of the scales, "[64, 576]", if the shape does not say it
};

statistics statistics_of(const shown_tensor& tensor, const samebits::executor& where) {
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
  if (matrix && is_quantizable(tensor.how->format)) {
    const std::string name = tensor.plain_name();
    const samebits::matrix_shape shape =
        judged_matrix_of(tensor.info, is_weight_shaped(name, guessed_role(name)));
    if (shape != matrix_of(tensor.info)) result.matrix = shape_text(shape);
    const source_matrix in = matrix_of(*tensor.file, tensor.info, *tensor.how, shape);
    result.scales = scale_ranges_of(in.view, where);
  }
  return result;
}

/// log2(amax / min_nonzero).
std::optional<double> dynamic_range_log2(const samebits::cast_statistics& s) {
  return s.min_nonzero ? std::optional(std::log2(*s.amax) - std::log2(*s.min_nonzero))
                       : std::nullopt;
}

std::string number(const std::optional<double>& value) { return value ? general(*value, 6) : "-"; }

/// Percentages above their values.
std::string percentile_lines(const std::vector<double>& values) {
  if (values.empty()) return {};
  constexpr std::size_t width = 11;  // "-1.234e-05"
  std::string heading;
  std::string line;
  for (std::size_t i = 0; i < values.size(); ++i) {
    heading += right(cat(samebits::percentages[i], " %"), width);
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
  const samebits::cast_statistics& d = all.elements;
  const auto range = dynamic_range_log2(d);
  std::string text =
      cat("  min ", number(d.min), "   max ", number(d.max), "   mean ", number(d.mean), "   std ",
          number(d.std), "\n  zeros ", d.zeros, " (", percent(d.zeros, d.count), ")   NaN ", d.nan,
          "   Inf ", d.inf, "   L1 norm ", number(d.l1_norm), "   L2 norm ", number(d.l2_norm),
          "\n  amax ", number(d.amax), "   smallest non-zero ", number(d.min_nonzero),
          "   their ratio ", range ? cat("2^", fixed(*range, 1)) : "-", "\n");
  text += percentile_lines(d.percentiles);
  text += channel_line(all.rows, "row", "rows") + channel_line(all.columns, "column", "columns");
  for (const scale_range& one : all.scales) text += scale_line(one, all.matrix);
  return text;
}

void write_channels(json_writer& json, const char* name,
                    const std::optional<channel_range>& range) {
  json.key(name);
  if (!range) return json.value(std::nullopt);
  json.begin_object(json_writer::layout::one_line);
  json.member("channels", range->channels);
  json.member("zero", range->zero);
  json.member("not_finite", range->not_finite);
  json.member("smallest_amax", range->smallest);
  json.member("median_amax", range->median);
  json.member("largest_amax", range->largest);
  json.member("largest", range->largest_index);
  json.end_object();
}

void write_percentiles(json_writer& json, const std::vector<double>& values) {
  json.key("percentiles");
  if (values.empty()) return json.value(std::nullopt);
  json.begin_object(json_writer::layout::one_line);
  for (std::size_t i = 0; i < values.size(); ++i) {
    json.member(std::to_string(samebits::percentages[i]), values[i]);
  }
  json.end_object();
}

void write_scales(json_writer& json, const std::vector<scale_range>& scales) {
  json.key("scales");
  json.begin_array();
  for (const scale_range& range : scales) {
    json.begin_object(json_writer::layout::one_line);
    json.member("recipe", range.recipe);
    json.member("tiles", range.tiles);
    json.member("zero_tiles", range.zero_tiles);
    json.member("smallest_log2", range.smallest_log2);
    json.member("largest_log2", range.largest_log2);
    json.end_object();
  }
  json.end_array();
}

void write_statistics_json(json_writer& json, const statistics& all) {
  const samebits::cast_statistics& d = all.elements;
  json.begin_object();
  json.member("zeros", d.zeros);
  json.member("nan", d.nan);
  json.member("inf", d.inf);
  json.member("min", d.min);
  json.member("max", d.max);
  json.member("amax", d.amax);
  json.member("min_nonzero", d.min_nonzero);
  json.member("dynamic_range_log2", dynamic_range_log2(d));
  json.member("mean", d.mean);
  json.member("std", d.std);
  json.member("l1_norm", d.l1_norm);
  json.member("l2_norm", d.l2_norm);
  write_percentiles(json, d.percentiles);
  write_channels(json, "rows", all.rows);
  write_channels(json, "columns", all.columns);
  write_scales(json, all.scales);
  json.end_object();
}

/// Bytes of the tensors that have statistics.
std::uint64_t bytes_of(std::span<const shown_tensor> tensors) {
  std::uint64_t bytes = 0;
  for (const shown_tensor& tensor : tensors) {
    if (tensor.how) bytes += tensor.info.bytes;
  }
  return bytes;
}

}  // namespace

void write_tensor_statistics(std::span<const shown_tensor> tensors, const samebits::executor& where,
                             const terminal& term, output& out) {
  const std::uint64_t bytes = bytes_of(tensors);
  progress line(bytes, bytes);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const shown_tensor& tensor = tensors[i];
    const std::string type = tensor.how ? std::string(type_text(tensor.info, *tensor.how)) : "";
    out.write(cat(i == 0 ? "" : "\n", term.painted(paint::heading, tensor.title()), "  ", type,
                  type.empty() ? "[" : " [", comma_separated(tensor.info.shape), "]  ",
                  number_of(tensor.info.count, "element"), "\n"));
    out.write(tensor.how ? statistics_text(statistics_of(tensor, where))
                         : cat("  ", tensor.note, "\n"));
    if (tensor.how) line.add(tensor.info.bytes);
  }
}

void write_tensor_statistics_json(std::span<const shown_tensor> tensors,
                                  const samebits::executor& where, output& out) {
  json_writer json;
  json.begin_object();
  json.member("schema", 1);
  json.key("tensors");
  json.begin_array();
  const std::uint64_t bytes = bytes_of(tensors);
  progress line(bytes, bytes);
  for (const shown_tensor& tensor : tensors) {
    json.begin_object();
    json.member("name", tensor.info.name);
    json.member("from",
                tensor.how ? std::optional(type_text(tensor.info, *tensor.how)) : std::nullopt);
    json.member("shape", std::span<const std::uint64_t>(tensor.info.shape));
    json.member("count", tensor.info.count);
    json.key("statistics");
    if (tensor.how) {
      write_statistics_json(json, statistics_of(tensor, where));
      line.add(tensor.info.bytes);
    } else {
      json.value(std::nullopt);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  out.write(json.document());
}

}  // namespace fpinspect
