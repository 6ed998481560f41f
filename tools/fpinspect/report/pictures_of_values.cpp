// Pictures of a report: the magnitudes of values, and what formats keep of them.

#include "fpinspect/output/histogram.hpp"
#include "fpinspect/report/pictures.hpp"

namespace fpinspect {

// --- Elements by power of two as columns above the ranges of formats -----------------------------

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
    return picture_axis{static_cast<double>(first), static_cast<double>(end), plot_left,
                        plot_right}(exponent);
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
                std::span<const format_id> formats) {
  for (const format_id format : formats) {
    const format_range range(format);
    picture.text("end", plot_left - 6, y + 9, name(format));
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
                             std::span<const format_id> formats) {
  const exponent_axis axis = axis_for(counts);
  std::vector<std::uint64_t> columns(static_cast<std::size_t>((axis.end - axis.first) / axis.step));
  std::uint64_t total = 0;
  for (const auto& [exponent, count] : counts) {
    columns[static_cast<std::size_t>((exponent - axis.first) / axis.step)] += count;
    total += count;
  }
  const auto fullest = std::ranges::max_element(columns);
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

// --- Significant bits that formats keep at each magnitude ----------------------------------------

namespace {

constexpr double area_left = 28;
constexpr double area_right = picture_width - 10;
constexpr double area_top = 24;
constexpr double area_bottom = 190;
constexpr int first_exponent = -40;
constexpr int end_exponent = 20;
constexpr int most_bits = 12;

constexpr picture_axis x_of = {first_exponent, end_exponent, area_left, area_right};
constexpr picture_axis y_of = {0, most_bits, area_bottom, area_top};

/// Significant bits of the values in [2^exponent, 2^(exponent + 1)).
int bits_at(const format_range& range, int mantissa_bits, int exponent) {
  switch (range.binade(exponent)) {
    case band::normal: return mantissa_bits + 1;
    case band::subnormal: return exponent - range.minimum + 1;
    default: return 0;
  }
}

std::string steps_of(format_id format) {
  const format_range range(format);
  const int mantissa = spec_of(format).mantissa_bits;
  std::string data;
  int before = -1;
  for (int e = first_exponent; e < end_exponent; ++e) {
    const int bits = bits_at(range, mantissa, e);
    if (data.empty()) data = cat("M", coordinate(x_of(e)), " ", coordinate(y_of(bits)));
    if (bits != before) data += cat("V", coordinate(y_of(bits)));
    data += cat("H", coordinate(x_of(e + 1)));
    before = bits;
  }
  return data;
}

/// The magnitudes of the file as columns behind the curves.
std::string backdrop(const std::map<int, std::uint64_t>& counts) {
  std::uint64_t most = 0;
  for (const auto& [exponent, count] : counts) most = std::max(most, count);
  std::string data;
  for (const auto& [exponent, count] : counts) {
    if (exponent < first_exponent || exponent >= end_exponent) continue;
    const double share = static_cast<double>(count) / static_cast<double>(most);
    data += cat("M", coordinate(x_of(exponent)), " ", coordinate(area_bottom), "V",
                coordinate(y_of(share * most_bits)), "H", coordinate(x_of(exponent + 1)), "V",
                coordinate(area_bottom), "z");
  }
  return data;
}

}  // namespace

svg_picture resolution_picture(const std::map<int, std::uint64_t>& counts) {
  struct curve {
    format_id format;
    std::string_view css_class;
    int label_at;  ///< exponent
  };
  constexpr std::array curves = {
      curve{format_id::fp16, "c1", -13}, curve{format_id::bf16, "c2", -39},
      curve{format_id::e4m3, "c3", -5}, curve{format_id::e5m2, "c4", -14}};
  svg_picture picture(picture_width, 222, "Resolution of formats",
                      "Significant bits at each magnitude without a scale: bf16 8 everywhere; fp16 "
                      "11 from 2^-14 to 2^15, fewer below; e4m3 4 from 2^-6 to 2^8; e5m2 3 from "
                      "2^-14 to 2^15. Columns: the magnitudes of all values of the file.");
  for (int bits = 0; bits <= most_bits; bits += 4) {
    picture.tick_on_left(bits == 0 ? "axis" : "grid", area_left, area_right, y_of(bits), cat(bits));
  }
  if (!counts.empty()) picture.path("faint", backdrop(counts));
  for (int e = first_exponent; e < end_exponent; e += 8) {
    picture.tick_below(x_of(e), area_bottom, power_text(e));
  }
  picture.text("start", 0, 12, "significant bits");
  for (const curve& one : curves) {
    picture.path(one.css_class, steps_of(one.format));
    const format_range range(one.format);
    const int bits = bits_at(range, spec_of(one.format).mantissa_bits, one.label_at);
    picture.text("strong", x_of(one.label_at), y_of(bits) - 5, name(one.format));
  }
  return picture;
}

}  // namespace fpinspect
