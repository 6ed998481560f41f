// Elements by power of two as columns above the ranges of formats.
#include <algorithm>
#include <string_view>
#include <vector>

#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/formats/describe.hpp"
#include "fpinspect/output/format_range.hpp"
#include "fpinspect/report/pictures.hpp"

namespace fpinspect {
namespace {

constexpr double plot_left = 52;
constexpr double plot_right = picture_width - 8;
constexpr double plot_top = 16;
constexpr double plot_height = 96;
constexpr double band_height = 15;

/// The binades of the horizontal axis.
struct exponent_axis {
  int first;
  int end;
  int step;  ///< binades a column

  [[nodiscard]] double x(int exponent) const {
    const double share = static_cast<double>(exponent - first) / static_cast<double>(end - first);
    return plot_left + share * (plot_right - plot_left);
  }
  [[nodiscard]] double clamped(int exponent) const { return x(std::clamp(exponent, first, end)); }
};

exponent_axis axis_for(const std::map<int, std::uint64_t>& counts) {
  constexpr int fewest = 16;
  constexpr int most_columns = 110;
  int first = counts.begin()->first;
  int end = counts.rbegin()->first + 1;
  if (end - first < fewest) {
    first -= (fewest - (end - first)) / 2;
    end = first + fewest;
  }
  int step = 1;
  while ((end - first) / step > most_columns) step *= 2;
  end = first + (end - first + step - 1) / step * step;
  return {first, end, step};
}

void draw_exponents(svg_picture& picture, const exponent_axis& axis, double y) {
  int every = 4;
  while ((axis.end - axis.first) / every > 7) every *= 2;
  for (int e = axis.first; e <= axis.end; ++e) {
    if (e % every != 0) continue;
    const double at = axis.x(e);
    if (at > plot_right - 12) break;
    picture.line("axis", at, y - 12, at, y - 8);
    picture.text("middle", std::max(at, plot_left + 8), y + 2, power_text(e));
  }
}

void draw_bands(svg_picture& picture, const exponent_axis& axis, double y,
                std::span<const samebits::format_id> formats) {
  for (const samebits::format_id format : formats) {
    const format_range range(format);
    picture.text("end", plot_left - 6, y + 9, samebits::name(format));
    picture.line("outside", plot_left, y + 5, plot_right, y + 5);
    const double minimum = axis.clamped(range.minimum);
    const double normal = axis.clamped(range.min_normal);
    const double maximum = axis.clamped(range.maximum + 1);
    if (normal > minimum) picture.rect("subnormal", minimum, y + 2.5, normal - minimum, 5);
    if (maximum > normal) picture.rect("normal", normal, y, maximum - normal, 10);
    y += band_height;
  }
}

}  // namespace

svg_picture exponent_picture(const std::string& tensor, const std::map<int, std::uint64_t>& counts,
                             std::span<const samebits::format_id> formats) {
  const exponent_axis axis = axis_for(counts);
  std::vector<std::uint64_t> columns(static_cast<std::size_t>((axis.end - axis.first) / axis.step));
  std::uint64_t total = 0;
  for (const auto& [exponent, count] : counts) {
    columns[static_cast<std::size_t>((exponent - axis.first) / axis.step)] += count;
    total += count;
  }
  const auto fullest = std::max_element(columns.begin(), columns.end());
  const int at = axis.first + static_cast<int>(fullest - columns.begin()) * axis.step;
  const double bottom = plot_top + plot_height;
  const double height = bottom + 26 + band_height * static_cast<double>(formats.size());
  svg_picture picture(picture_width, height, cat("Magnitudes of ", tensor),
                      cat("Values from ", power_text(counts.begin()->first), " to below ",
                          power_text(counts.rbegin()->first + 1), "; most in the column of ",
                          power_text(at), ", ", percent(*fullest, total),
                          ". Below: where each format is normal (thick), subnormal "
                          "(thin) or out of range (dotted)."));
  std::string bars;
  const double width = axis.x(axis.first + axis.step) - plot_left;
  const double gap = width > 4 ? 1 : 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == 0) continue;
    const double share = static_cast<double>(columns[i]) / static_cast<double>(*fullest);
    const double top = bottom - std::max(1.0, share * plot_height);
    const double x = plot_left + static_cast<double>(i) * width;
    bars += cat("M", coordinate(x), " ", coordinate(bottom), "V", coordinate(top), "h",
                coordinate(width - gap), "V", coordinate(bottom), "z");
  }
  picture.line("grid", plot_left, plot_top, plot_right, plot_top);
  picture.path("bars", bars);
  picture.line("axis", plot_left, bottom, plot_right, bottom);
  picture.text("end", plot_left - 6, plot_top + 4, percent(*fullest, total));
  draw_exponents(picture, axis, bottom + 12);
  draw_bands(picture, axis, bottom + 22, formats);
  return picture;
}

}  // namespace fpinspect
