// The loss scale over the steps of a training run, and the steps that were skipped.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/report/pictures.hpp"

namespace fpinspect {
namespace {

constexpr double trace_left = 52;
constexpr double trace_right = picture_width - 12;
constexpr double trace_top = 14;
constexpr double trace_bottom = 150;
constexpr double skips_top = 160;
constexpr double skips_bottom = 186;
constexpr std::size_t most_columns = 336;  // a unit of the picture each

/// Consecutive steps.
struct trace_column {
  double lowest = 0;  ///< log2 of the scales; -Inf for a scale of 0
  double highest = 0;
  std::size_t steps = 0;
  std::size_t skipped = 0;
};

std::vector<trace_column> columns_of(std::span<const scaler_row> rows) {
  const std::size_t each = (rows.size() + most_columns - 1) / most_columns;
  std::vector<trace_column> columns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double log2 = std::log2(rows[i].scale);
    if (i % each == 0) columns.push_back({log2, log2, 0, 0});
    trace_column& c = columns.back();
    c.lowest = std::min(c.lowest, log2);
    c.highest = std::max(c.highest, log2);
    ++c.steps;
    if (!rows[i].applied) ++c.skipped;
  }
  return columns;
}

/// The vertical axis: whole powers of two, at least four apart. Scales of 0 lie at its bottom.
struct log2_axis {
  int bottom;
  int top;

  [[nodiscard]] double y(double log2) const {
    const double above = std::max(log2 - bottom, 0.0);
    return trace_bottom - above / (top - bottom) * (trace_bottom - trace_top);
  }
};

/// The axis of the scales above 0; of 1 if there are none.
log2_axis axis_of(std::span<const scaler_row> rows) {
  constexpr double none = std::numeric_limits<double>::infinity();
  double lowest = none;
  double highest = -none;
  for (const scaler_row& row : rows) {
    if (row.scale == 0) continue;
    lowest = std::min(lowest, std::log2(row.scale));
    highest = std::max(highest, std::log2(row.scale));
  }
  if (lowest == none) lowest = highest = 0;
  const int bottom = static_cast<int>(std::floor(lowest)) - 1;
  return {bottom, std::max(static_cast<int>(std::ceil(highest)) + 1, bottom + 4)};
}

/// The end of the picture's text: from which step to the last one the scale is 0.
std::string zeros_text(std::span<const scaler_row> rows) {
  const auto above = std::find_if(rows.rbegin(), rows.rend(),
                                  [](const scaler_row& row) { return row.scale != 0; });
  if (above == rows.rbegin()) return ".";
  return cat("; the scale is 0 from step ", above.base()->step, " on.");
}

void draw_grid(svg_picture& picture, const log2_axis& axis) {
  const int each = (axis.top - axis.bottom + 4) / 5;
  for (int k = axis.bottom; k <= axis.top; k += each) {
    picture.line("grid", trace_left, axis.y(k), trace_right, axis.y(k));
    picture.text("end", trace_left - 6, axis.y(k) + 4, power_text(k));
  }
}

}  // namespace

svg_picture scale_trace_picture(std::span<const scaler_row> rows) {
  const std::vector<trace_column> columns = columns_of(rows);
  const log2_axis axis = axis_of(rows);
  const auto skipped = static_cast<std::uint64_t>(
      std::count_if(rows.begin(), rows.end(), [](const scaler_row& row) { return !row.applied; }));
  svg_picture picture(picture_width, 222, "Loss scale of the training run",
                      cat(number_of(rows.size(), "step"), ", ", skipped, " skipped; the scale is ",
                          general(rows.front().scale, 6), " in the first step and ",
                          general(rows.back().scale, 6), " in the last", zeros_text(rows)));
  draw_grid(picture, axis);
  const double width = (trace_right - trace_left) / static_cast<double>(columns.size());
  std::string scales;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const trace_column& c = columns[i];
    const double x = trace_left + width * static_cast<double>(i);
    const std::string top = coordinate(axis.y(c.highest));
    scales += cat(i == 0 ? "M" : "L", coordinate(x), " ", top);
    if (c.lowest < c.highest) scales += cat("V", coordinate(axis.y(c.lowest)), "V", top);
    scales += cat("H", coordinate(x + width));
    if (c.skipped == 0) continue;
    const double share = static_cast<double>(c.skipped) / static_cast<double>(c.steps);
    const double height = std::max(6.0, share * (skips_bottom - skips_top));
    picture.rect("skipped", x, skips_bottom - height, std::max(width, 2.0), height);
  }
  picture.path("c1", scales);
  picture.line("axis", trace_left, skips_bottom, trace_right, skips_bottom);
  picture.text("end", trace_left - 6, skips_bottom, "skipped");
  picture.text("start", trace_left, 202, cat("step ", rows.front().step));
  picture.text("end", trace_right, 202, cat(rows.back().step));
  return picture;
}

}  // namespace fpinspect
