// `fpinspect diff`: explains why codes and scales of two quantizations of one tensor differ.
//
// A code and its scale determine the interval that contained the element: the cell of all numbers
// that round to the code. The cells of two quantizations of one number intersect. If they do not
// intersect, no difference of recipes explains the codes.
#include <cstdlib>

#include "fpinspect/checkpoint/quantized_matrix.hpp"
#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "samebits/convert.hpp"
#include "samebits/packing.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

// --- Why a code or a scale of one element differs ------------------------------------------------

/// Why a code or a scale differs.
enum class cause : std::uint8_t {
  scale_ulp,    ///< the scales are up to 4 ulp apart, which moved the element across a cell border
  tie,          ///< equal scales; the element was on a cell border and y was rounded differently
  policy,       ///< other scales, tiles or rounding, as the recipes say; the cells intersect
  nan,          ///< NaN or Inf among the elements, codes or scales
  saturation,   ///< one side clamped the element to its largest code
  unexplained,  ///< none of the above
};
constexpr std::array<std::string_view, 6> cause_names = {"scale_ulp", "tie",        "policy",
                                                         "nan",       "saturation", "unexplained"};

/// Upper bound of the relative error of a binary32 number after one product and one quotient.
constexpr double slack = 0x1p-20;

bool is_special(float x) { return !std::isfinite(x); }

/// Distance of two positive numbers in binary32 codes.
std::int64_t ulps_apart(float a, float b) {
  return std::abs(std::int64_t{std::bit_cast<std::int32_t>(a)} - std::bit_cast<std::int32_t>(b));
}

constexpr std::int64_t few_ulps = 4;

/// The values of the codes of a format.
struct code_values {
  /// @param format  e4m3 or e5m2
  /// @param is_stochastic  cells of stochastic rounding extend to both neighbours
  code_values(format_id format, bool is_stochastic)
      : largest(static_cast<std::uint8_t>(max_finite(format))), stochastic(is_stochastic) {
    for (std::uint8_t code = 0; code <= largest; ++code) of[code] = decode_double(format, code);
    // The value that the code after the largest one would have.
    of[largest + 1u] = 2 * of[largest] - of[largest - 1u];
  }

  std::array<double, 129> of{};
  std::uint8_t largest;
  bool stochastic;
};

struct interval {
  double low, high;
};

/// An element as one side stores it.
struct coded_element {
  const code_values& values;
  std::uint8_t code;
  float scale;  ///< scale of the code's tile

  [[nodiscard]] int magnitude() const { return code & 0x7F; }
  [[nodiscard]] bool is_nan_or_inf() const { return magnitude() > values.largest; }
  [[nodiscard]] bool is_largest() const { return magnitude() == values.largest; }
  /// The cell of the code: the numbers that round to it. `open`: the cell of the largest code has no
  /// upper bound.
  [[nodiscard]] interval cell(bool open) const {
    const std::size_t i = code & 0x7Fu;
    const double at = values.of[i];
    const double above = values.of[i + 1];
    const double below = i == 0 ? -above : values.of[i - 1];
    const double share = values.stochastic ? 1.0 : 0.5;
    interval cell = {at - (at - below) * share, at + (above - at) * share};
    if (open && is_largest()) cell.high = std::numeric_limits<double>::infinity();
    cell.low *= double{scale};
    cell.high *= double{scale};
    cell.low -= std::abs(cell.low) * slack;
    cell.high += std::abs(cell.high) * slack;
    return code >= 0x80 ? interval{-cell.high, -cell.low} : cell;
  }
};

bool meet(const interval& a, const interval& b) { return a.low <= b.high && b.low <= a.high; }

/// Whether both codes can come from one number, or from x if x is known.
bool can_be_one(const coded_element& a, const coded_element& b, const std::optional<double>& x) {
  if (!x) return meet(a.cell(true), b.cell(true));
  return meet(a.cell(true), {*x, *x}) && meet(b.cell(true), {*x, *x});
}

/// Why different codes differ. `same_rules`: the metadata of both files name one rule.
cause cause_of_codes(const coded_element& a, const coded_element& b, const std::optional<double>& x,
                     bool same_rules) {
  if (same_rules) return cause::unexplained;
  if (a.is_nan_or_inf() || b.is_nan_or_inf() || is_special(a.scale) || is_special(b.scale) ||
      (x && !std::isfinite(*x))) {
    return cause::nan;
  }
  if (!can_be_one(a, b, x)) return cause::unexplained;
  const bool clamped = a.is_largest() || b.is_largest();
  if (clamped && !meet(a.cell(false), b.cell(false))) return cause::saturation;
  const std::int64_t apart = ulps_apart(a.scale, b.scale);
  const int steps = std::abs(a.magnitude() - b.magnitude());
  if (apart == 0 && steps == 1) return cause::tie;
  if (apart != 0 && apart <= few_ulps && steps == 1) return cause::scale_ulp;
  return cause::policy;
}

/// Why different scales of one tile differ.
/// @param explained  whether each of its elements can have one value on both sides
/// @param special  whether its codes or elements contain a NaN or Inf
cause cause_of_scales(float a, float b, bool explained, bool special, bool same_rules) {
  if (same_rules) return cause::unexplained;
  if (is_special(a) || is_special(b) || special) return cause::nan;
  if (!explained) return cause::unexplained;
  return ulps_apart(a, b) <= few_ulps ? cause::scale_ulp : cause::policy;
}

// --- The comparison ------------------------------------------------------------------------------

/// One side of the comparison.
struct diffed_file {
  diffed_file(std::string_view which, const std::string& name)
      : path(whole_file(which, name)), file(open_file(path)) {
    for (const auto& [key, text] : file->metadata()) {
      if (key == "samebits.rule") stochastic = text.find("stochastic") != std::string::npos;
      if (key.starts_with("samebits.") && key != "samebits.recipe") rules += text + "; ";
    }
    const auto noted = noted_tile(*file, path);
    refuse_content_if(
        !noted, path,
        "has no samebits.block among its metadata; `fpinspect compare` takes any arrays");
    row_tile = *noted;
  }

  static const std::string& whole_file(std::string_view which, const std::string& name) {
    if (const auto tensor = locate(name).tensor) {
      throw usage_error(which, ": whole files are compared; leave ", quote("#" + *tensor), " out");
    }
    return name;
  }

  [[nodiscard]] bool has(std::string_view name) const {
    return contains(file->tensors(), name, &tensor_info::name);
  }

  std::string path;
  std::shared_ptr<const tensor_reader> file;
  tile_shape row_tile;
  std::string rules;  ///< all metadata on how the file was made, except the recipe's name
  bool stochastic = false;
};

/// The format of codes that can be compared. Throws file_error for codes of 4 and 6 bits.
format_id compared_format(const quantized_tensor& stored) {
  const format_id format = stored.codes.format();
  if (storage_bytes(format) * 8 == code_bits(format)) return format;
  refuse_content(stored.codes.path, "codes in ", format, " are not compared");
}

/// Codes and scales of one output.
struct diffed_matrix {
  diffed_matrix(const diffed_file& from, const std::string& suffix)
      : stored(quantized_output(from.file, from.path, suffix, from.row_tile)),
        codes(matrix_of(stored.codes)),
        shape(matrix_of(stored.codes.info)),
        tile(stored.tile),
        values(compared_format(stored), from.stochastic) {
    const source_matrix scales = matrix_of(stored.scales);
    scale_cols = scales.view.cols;
    scale_of_tile.resize(static_cast<std::size_t>(scales.view.rows * scale_cols));
    samebits::convert(scales.view, view_of(scale_of_tile.data(), scales.view.rows, scale_cols));
  }

  [[nodiscard]] std::size_t tile_of(std::int64_t row, std::int64_t col) const {
    const std::int64_t r = tile.rows == 0 ? 0 : row / tile.rows;
    const std::int64_t c = tile.cols == 0 ? 0 : col / tile.cols;
    return static_cast<std::size_t>(r * scale_cols + c);
  }
  [[nodiscard]] coded_element at(std::int64_t row, std::int64_t col) const {
    const auto* const bytes = static_cast<const std::uint8_t*>(codes.view.data);
    return {values, bytes[row * shape.cols + col], scale_of_tile[tile_of(row, col)]};
  }

  quantized_tensor stored;
  source_matrix codes;
  matrix_shape shape;
  tile_shape tile;
  std::int64_t scale_cols = 0;
  code_values values;
  std::vector<float> scale_of_tile;
};

struct difference_counts {
  std::uint64_t compared = 0, differ = 0;

  friend difference_counts operator+(const difference_counts& a, const difference_counts& b) {
    return {a.compared + b.compared, a.differ + b.differ};
  }
};

struct difference {
  difference_counts codes, scales;
  std::array<std::uint64_t, cause_names.size()> why{};
  std::string first_unexplained;

  /// Counts the cause of a difference in a code or scale of this tensor.
  void note(cause c, const std::string& tensor, std::int64_t row, std::int64_t col) {
    ++why[static_cast<std::size_t>(c)];
    if (c == cause::unexplained && first_unexplained.empty()) {
      first_unexplained = cat(tensor, " [", row, ", ", col, "]");
    }
  }
};

/// The elements that were quantized, in fp64, if they are known.
using known_elements = std::optional<const_matrix_view>;

/// Compares one output of both files.
void compare_outputs(const diffed_matrix& a, const diffed_matrix& b, const std::string& suffix,
                     bool same_rules, const known_elements& source, difference& all) {
  std::vector<bool> explained(a.scale_of_tile.size(), true);
  std::vector<bool> special(a.scale_of_tile.size(), false);
  for (std::int64_t row = 0; row < a.shape.rows; ++row) {
    for (std::int64_t col = 0; col < a.shape.cols; ++col) {
      const coded_element in_a = a.at(row, col);
      const coded_element in_b = b.at(row, col);
      const std::size_t tile = a.tile_of(row, col);
      std::optional<double> x;
      if (source) {
        x = static_cast<const double*>(
            source->data)[row * source->row_stride + col * source->col_stride];
      }
      ++all.codes.compared;
      if (in_a.is_nan_or_inf() || in_b.is_nan_or_inf() || (x && !(*x - *x == 0))) {
        special[tile] = true;
      } else if (!can_be_one(in_a, in_b, x)) {
        explained[tile] = false;
      }
      if (in_a.code == in_b.code && a.codes.view.format == b.codes.view.format) continue;
      ++all.codes.differ;
      all.note(cause_of_codes(in_a, in_b, x, same_rules), "codes" + suffix, row, col);
    }
  }
  if (a.tile != b.tile) return;
  for (std::size_t i = 0; i < a.scale_of_tile.size(); ++i) {
    ++all.scales.compared;
    const float scale_a = a.scale_of_tile[i];
    const float scale_b = b.scale_of_tile[i];
    if (std::bit_cast<std::uint32_t>(scale_a) == std::bit_cast<std::uint32_t>(scale_b)) continue;
    ++all.scales.differ;
    const auto at = static_cast<std::int64_t>(i);
    all.note(cause_of_scales(scale_a, scale_b, explained[i], special[i], same_rules),
             "scales" + suffix, at / a.scale_cols, at % a.scale_cols);
  }
}

difference difference_of(const diffed_file& a, const diffed_file& b, const known_elements& source) {
  difference all;
  bool any = false;
  for (const std::string suffix : {"", "_col", "_t"}) {
    const std::string codes = "codes" + suffix;
    if (!a.has(codes) || !b.has(codes)) continue;
    any = true;
    const diffed_matrix in_a(a, suffix);
    const diffed_matrix in_b(b, suffix);
    if (in_a.shape != in_b.shape) refuse_content(b.path, codes + " has another shape than in A");
    const known_elements x = source && suffix == "_t" ? transposed(*source) : source;
    refuse_if(x && matrix_shape{x->rows, x->cols} != in_a.shape,
              "--source: has another shape than ", codes);
    compare_outputs(in_a, in_b, suffix, a.rules == b.rules, x, all);
  }
  if (!any) refuse_content(b.path, "has no codes in common with A");
  return all;
}

json_object json_of(const difference& d) {
  const auto part = [](const difference_counts& counts) {
    return json_line({{"compared", counts.compared}, {"differ", counts.differ}});
  };
  const difference_counts both = d.codes + d.scales;
  json_object why;
  for (std::size_t i = 0; i < cause_names.size(); ++i) why.add(cause_names[i], d.why[i]);
  return {{"compared", both.compared},
          {"differ", both.differ},
          {"why", why},
          {"codes", part(d.codes)},
          {"scales", part(d.scales)}};
}

std::string text_of(const difference& d) {
  const auto part = [](const char* which, const difference_counts& counts) {
    return cat(which, ": ", counts.differ, " of ", counts.compared, " differ\n");
  };
  std::string text = part("codes", d.codes) + part("scales", d.scales);
  for (std::size_t i = 0; i < cause_names.size(); ++i) {
    if (d.why[i] == 0) continue;
    text += cat("  ", left(cause_names[i], 12), d.why[i], "\n");
  }
  if (d.first_unexplained.empty()) return text;
  return cat(text, "  first unexplained: ", d.first_unexplained, "\n");
}

run_function diff_command(option_list& add) {
  auto& path_a = add.required("A", "A file that quantize wrote");
  auto& path_b = add.required("B", "Another one of the same tensor");
  auto& path_of_source = add.text("--source", cat("The tensor: ", tensor_help));
  auto& from = add.text("--from", "Its integers are codes of this format");
  add.need({"--from"}, "--source");
  return [&](const session& s) {
    const diffed_file a("A", path_a);
    const diffed_file b("B", path_b);
    std::vector<double> elements;
    known_elements source;
    if (!path_of_source.empty()) {
      const source_tensor tensor = open_source("--source", path_of_source, "--from", from);
      require_quantizable(tensor.format(), path_of_source);
      const source_matrix in = matrix_of(tensor);
      elements.resize(tensor.info.count);
      decode(tensor.format(), static_cast<const std::byte*>(in.view.data), elements);
      source = view_of(elements.data(), in.view.rows, in.view.cols);
    }
    const difference d = difference_of(a, b, source);
    s.write(json_object{{"a", path_a}, {"b", path_b}}.add(json_of(d)), text_of(d));
    const difference_counts both = d.codes + d.scales;
    if (both.differ == 0) return;
    throw check_failed("diff: ", number_of(both.differ, "result"),
                       both.differ == 1 ? " differs" : " differ");
  };
}

const registered diff_here("diff", "Say why two quantizations of a tensor differ", 80,
                           diff_command);

}  // namespace
}  // namespace fpinspect
