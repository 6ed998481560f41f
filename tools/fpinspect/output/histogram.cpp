// The exponents of a tensor as a column chart: implementation.
#include "fpinspect/output/histogram.hpp"

namespace fpinspect {
namespace {

constexpr int chart_height = 6;   // rows
constexpr int margin_width = 10;  // width left of the columns

/// The horizontal axis: columns of `step` binades. The first column starts at a multiple of `step`.
struct axis {
  int first;  ///< exponent
  int step;
  int columns;
  int column_width;  ///< characters

  [[nodiscard]] int exponent(int column) const { return first + column * step; }
};

axis axis_of(const std::map<int, std::uint64_t>& counts, int width) {
  const int minimum = counts.begin()->first;
  const int maximum = counts.rbegin()->first;
  const int room = width - margin_width;
  const auto floor_to = [](int exponent, int step) {
    return exponent - ((exponent % step) + step) % step;
  };
  int step = 1;
  while ((floor_to(maximum, step) - floor_to(minimum, step)) / step + 1 > room) step *= 2;
  const int first = floor_to(minimum, step);
  const int columns = (floor_to(maximum, step) - first) / step + 1;
  return {first, step, columns, std::clamp(room / columns, 1, 3)};
}

std::vector<std::uint64_t> column_counts(const std::map<int, std::uint64_t>& counts,
                                         const axis& x) {
  std::vector<std::uint64_t> columns(static_cast<std::size_t>(x.columns));
  for (const auto& [exponent, count] : counts) {
    columns[static_cast<std::size_t>((exponent - x.first) / x.step)] += count;
  }
  return columns;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

/// The character of a column in one row, counted from the foot of the chart. Rows are divided into
/// 8 levels (Unicode) or 3 levels (ASCII).
std::string_view cell(charset characters, double height_in_rows, int row) {
  const std::span<const std::string_view> marks = level_marks(characters);
  const auto levels = static_cast<double>(marks.size() - 1);
  const double part = (height_in_rows - row) * levels;
  // Any non-zero count is visible.
  const double minimum = row == 0 && height_in_rows > 0 ? 1.0 : 0.0;
  return marks[static_cast<std::size_t>(std::clamp(part, minimum, levels))];
}

std::string chart(const std::vector<std::uint64_t>& columns, const axis& x, charset characters) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : columns) total += count;
  const auto maximum = static_cast<double>(*std::ranges::max_element(columns));
  const std::string_view edge = characters == charset::unicode ? "│" : "|";
  std::string text;
  for (int row = chart_height - 1; row >= 0; --row) {
    const double share = 100.0 * maximum / static_cast<double>(total);
    const std::string label = row == chart_height - 1 ? cat(fixed(share, 1), " %") : "";
    text += cat(right(label, 8), " ", edge);
    std::string line;
    for (const std::uint64_t count : columns) {
      const double height = static_cast<double>(count) / maximum * chart_height;
      line += repeated(cell(characters, height, row), x.column_width);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

/// The foot of the chart: a line, and an exponent label below about every tenth column.
std::string foot(const axis& x, charset characters) {
  const bool unicode = characters == charset::unicode;
  std::string text = std::string(margin_width - 1, ' ') + (unicode ? "└" : "+") +
                     repeated(unicode ? "─" : "-", x.columns * x.column_width) + "\n";
  constexpr int longest_label = 8;  // "2^-1074" and a space: the first label always fits
  const int width = margin_width + std::max(x.columns * x.column_width, longest_label);
  std::string labels(margin_width, ' ');
  for (int column = 0; column < x.columns; ++column) {
    const int start = margin_width + column * x.column_width;
    const auto at = static_cast<std::size_t>(start);
    const std::string label = power_text(x.exponent(column));
    const bool fits = at + label.size() <= static_cast<std::size_t>(width);
    const bool free = column == 0 || at >= labels.size() + 3;
    if (!fits || !free) continue;
    labels.resize(at, ' ');
    labels += label;
  }
  return text + labels + "\n";
}

struct band_mark {
  std::string_view unicode;
  std::string_view ascii;
  paint color;
};

band_mark mark_of(band what) {
  switch (what) {
    case band::normal: return {"█", "#", paint::good};
    case band::subnormal: return {"░", "-", paint::caution};
    case band::mixed: return {"▒", "+", paint::caution};
    case band::outside: return {"·", ".", paint::bad};
  }
  return {"", "", paint::bad};
}

}  // namespace

std::string marked(band what, int times, const terminal& term, std::string_view other) {
  const band_mark mark = mark_of(what);
  const bool unicode = term.characters() == charset::unicode;
  const std::string_view own = unicode ? mark.unicode : mark.ascii;
  return term.painted(mark.color, repeated(other.empty() ? own : other, times));
}

namespace {

/// The band of all binades of a column.
band column_band(const format_range& range, const axis& x, int column) {
  const int first = x.exponent(column);
  const band start = range.binade(first);
  for (int i = 1; i < x.step; ++i) {
    if (range.binade(first + i) != start) return band::mixed;
  }
  return start;
}

std::string range_line(format_id format, const axis& x, const terminal& term) {
  const format_range range(format);
  std::string line = right(name(format), 8) + "  ";
  for (int column = 0; column < x.columns;) {
    const band what = column_band(range, x, column);
    int end = column + 1;
    while (end < x.columns && column_band(range, x, end) == what) ++end;
    line += marked(what, (end - column) * x.column_width, term);
    column = end;
  }
  return line + "\n";
}

}  // namespace

std::string histogram(const std::map<int, std::uint64_t>& counts,
                      std::span<const format_id> formats, const terminal& term) {
  if (counts.empty()) return "";
  const axis x = axis_of(counts, term.width());
  std::string text =
      chart(column_counts(counts, x), x, term.characters()) + foot(x, term.characters());
  for (const format_id format : formats) text += range_line(format, x, term);
  return text;
}

std::string histogram_legend(const terminal& term) {
  return cat(marked(band::normal, 1, term), " normal  ", marked(band::subnormal, 1, term),
             " subnormal  ", marked(band::outside, 1, term), " beyond the format's range  ",
             marked(band::mixed, 1, term), " partly\n");
}

}  // namespace fpinspect
