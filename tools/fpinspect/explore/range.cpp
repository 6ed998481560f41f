// `fpinspect range`: all formats on one axis of powers of ten.

#include <iterator>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/output/histogram.hpp"

namespace fpinspect {
namespace {

/// The positive values of a format, as powers of ten.
struct decade_range {
  format_id format;
  double minimum;     ///< log10 of the smallest positive value
  double min_normal;  ///< log10 of the smallest normal value
  double maximum;     ///< log10 of the largest finite value
};

decade_range decade_range_of(format_id format) {
  const auto log_of = [&](std::uint64_t code) { return std::log10(decode_double(format, code)); };
  return {format, log_of(min_positive(format)), log_of(min_normal(format)),
          log_of(max_finite(format))};
}

/// An axis of columns, each `step` decades wide. Column 0 begins at 10^first.
struct decade_axis {
  double first;
  double step;
  int columns;

  [[nodiscard]] double start(int column) const { return first + column * step; }
};

/// Returns the axis with the narrowest columns that needs at most `room` columns. The axis covers
/// all ranges but that of fp64, which would leave a few columns to all others; if there is no other
/// range, the axis covers fp64.
decade_axis decade_axis_of(std::span<const decade_range> ranges, int room) {
  constexpr std::array steps = {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0};
  std::vector<decade_range> covered;
  std::ranges::copy_if(ranges, std::back_inserter(covered), [&](const decade_range& range) {
    return range.format != format_id::fp64 || ranges.size() == 1;
  });
  const double minimum = std::ranges::min(covered, {}, &decade_range::minimum).minimum;
  const double maximum = std::ranges::max(covered, {}, &decade_range::maximum).maximum;
  decade_axis axis{};
  for (const double step : steps) {
    axis.step = step;
    axis.first = std::floor(minimum / step) * step;
    axis.columns = static_cast<int>(std::floor((maximum - axis.first) / step)) + 1;
    if (axis.columns <= room) break;
  }
  return axis;
}

/// The values of a format that fall into each column.
std::vector<band> bands_of(const decade_range& range, const decade_axis& axis) {
  std::vector<band> bands;
  for (int column = 0; column < axis.columns; ++column) {
    const double start = axis.start(column);
    const double end = axis.start(column + 1);
    const bool subnormal = start < range.min_normal && end > range.minimum;
    const bool normal = start <= range.maximum && end > range.min_normal;
    bands.push_back(subnormal && normal ? band::mixed
                    : subnormal         ? band::subnormal
                    : normal            ? band::normal
                                        : band::outside);
  }
  return bands;
}

struct range_marks {
  std::string_view before;  ///< the range goes on below the axis
  std::string_view after;
  std::string_view tick;
};

range_marks marks_of(charset characters) {
  if (characters == charset::unicode) return {"◀", "▶", "┬"};
  return {"<", ">", "|"};
}

/// The picture of one format, without trailing spaces.
std::string range_bar(const decade_range& range, const decade_axis& axis, const terminal& term) {
  const range_marks marks = marks_of(term.characters());
  std::vector<band> bands = bands_of(range, axis);
  while (!bands.empty() && bands.back() == band::outside) bands.pop_back();
  std::string bar;
  for (std::size_t i = 0; i < bands.size(); ++i) {
    const bool goes_on_before = i == 0 && range.minimum < axis.start(0);
    const bool goes_on_after = i + 1 == bands.size() && range.maximum >= axis.start(axis.columns);
    const std::string_view end = goes_on_before ? marks.before : goes_on_after ? marks.after : "";
    bar += bands[i] == band::outside ? " " : marked(bands[i], 1, term, end);
  }
  return bar;
}

constexpr std::size_t margin = 35;  // characters left of the pictures

/// Two lines below the pictures: ticks, and powers of ten.
std::string axis_foot(const decade_axis& axis, charset characters) {
  constexpr std::array distances = {1, 2, 5, 10, 20, 50, 100, 200, 500};
  const auto columns_of = [&](int decades) { return static_cast<int>(decades / axis.step); };
  int distance = distances.back();
  for (const int candidate : distances) {
    if (columns_of(candidate) >= 8) distance = std::min(distance, candidate);
  }
  std::string ticks(margin, ' ');
  std::string labels(margin, ' ');
  for (int column = 0; column < axis.columns; ++column) {
    const auto decade = static_cast<int>(std::lround(axis.start(column)));
    const bool whole = std::fabs(axis.start(column) - decade) < axis.step / 2;
    const bool tick = whole && decade % distance == 0;
    ticks += tick ? marks_of(characters).tick : characters == charset::unicode ? "─" : "-";
    if (!tick) continue;
    labels.resize(margin + static_cast<std::size_t>(column), ' ');
    labels += cat("1e", decade);
  }
  return ticks + "\n" + labels + "\n";
}

std::string legend(const decade_axis& axis, const terminal& term) {
  const range_marks marks = marks_of(term.characters());
  return cat("\n", marked(band::normal, 1, term), " normal  ", marked(band::subnormal, 1, term),
             " subnormal  ", marked(band::mixed, 1, term), " both  ", marks.before, " ",
             marks.after, " goes on  a column: ", shortest(axis.step),
             axis.step == 1 ? " decade\n" : " decades\n");
}

double smallest(const decade_range& r) { return decode_double(r.format, min_positive(r.format)); }
double largest(const decade_range& r) { return decode_double(r.format, max_finite(r.format)); }

constexpr column<decade_range> range_columns[] = {
    {"name", "format", 9, [](auto& r) { return name(r.format); }},
    {"min_positive", "smallest", -8, [](auto& r) { return smallest(r); },
     [](auto& r) { return scientific(smallest(r), 1); }},
    {"min_normal", "", 0, [](auto& r) { return decode_double(r.format, min_normal(r.format)); }},
    {"max", "largest", -9, [](auto& r) { return largest(r); },
     [](auto& r) { return scientific(largest(r), 1); }},
    {"decades", "decades", -8, [](auto& r) { return r.maximum - r.minimum; },
     [](auto& r) { return fixed(r.maximum - r.minimum, 1); }},
    {"decades_subnormal", "", 0, [](auto& r) { return r.min_normal - r.minimum; }},
};

run_function range_command(option_list& add) {
  add.ascii();
  auto& formats = add.list(
      "FORMAT",
      [](const std::vector<std::string>& texts) {
        return texts.empty() ? all_formats() : format_list_argument("FORMAT", texts);
      },
      "Formats (default: all)");
  add.exclude("--json", {"--ascii"});
  return [&](const session& s) {
    std::vector<decade_range> ranges;
    for (const format_id format : formats) ranges.push_back(decade_range_of(format));
    const decade_axis axis = decade_axis_of(ranges, s.term.width() - static_cast<int>(margin));
    std::string heading = table_heading(range_columns);
    heading.pop_back();
    std::string text = s.term.painted(paint::heading, heading) + "\n";
    for (const decade_range& range : ranges) {
      std::string line = table_line(range_columns, range);
      line.back() = ' ';
      text += line + range_bar(range, axis, s.term) + "\n";
    }
    text += axis_foot(axis, s.term.characters()) + legend(axis, s.term);
    s.write({{"formats", table_json(range_columns, ranges, true)}}, text);
  };
}

const registered range_here("range", "Show the ranges of formats on one axis of decades", 180,
                            range_command);

}  // namespace
}  // namespace fpinspect
