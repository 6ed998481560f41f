// A loss scale over time as a chart: implementation.
#include "fpinspect/scaler/scaler_plot.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "fpinspect/cli/text/text.hpp"

namespace fpinspect {
namespace {

constexpr std::size_t scale_margin = 10;  // width left of the columns
constexpr int max_rows = 16;

/// The content of one column.
struct scaler_column {
  int lowest = 0;  ///< lowest, highest: exponents
  int highest = 0;
  std::size_t steps = 0;
  std::size_t skipped = 0;
};

/// floor(log2(scale)). Zero gives -1075 and infinity 1024, outside the range of all other scales.
int exponent_of(double scale) {
  if (scale == 0) return -1075;
  return std::isfinite(scale) ? std::ilogb(scale) : 1024;
}

std::vector<scaler_column> columns_for(std::span<const scaler_row> rows, std::size_t room) {
  const std::size_t each = (rows.size() + room - 1) / room;
  std::vector<scaler_column> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int exponent = exponent_of(rows[i].scale);
    if (i % each == 0) all.push_back({exponent, exponent, 0, 0});
    scaler_column& c = all.back();
    c.lowest = std::min(c.lowest, exponent);
    c.highest = std::max(c.highest, exponent);
    ++c.steps;
    if (!rows[i].applied) ++c.skipped;
  }
  return all;
}

std::string_view skip_mark(const scaler_column& c, charset characters) {
  constexpr std::string_view unicode[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::string_view ascii[] = {" ", ".", ":", "#"};
  const std::span<const std::string_view> marks = characters == charset::unicode
                                                      ? std::span<const std::string_view>(unicode)
                                                      : std::span<const std::string_view>(ascii);
  const std::size_t top = marks.size() - 1;
  return marks[(c.skipped * top + c.steps - 1) / c.steps];  // a single skipped step is visible
}

std::string scale_label(int exponent) {
  if (exponent == -1075) return "0";
  return exponent == 1024 ? "inf" : cat("2^", exponent);
}

}  // namespace

std::string scaler_plot(std::span<const scaler_row> rows, const terminal& term) {
  if (rows.empty()) return {};
  const bool unicode = term.characters() == charset::unicode;
  const auto room = static_cast<std::size_t>(term.width()) - scale_margin;
  const std::vector<scaler_column> columns = columns_for(rows, room);
  int lowest = columns.front().lowest;
  int highest = columns.front().highest;
  for (const scaler_column& c : columns) {
    lowest = std::min(lowest, c.lowest);
    highest = std::max(highest, c.highest);
  }
  const int each = (highest - lowest) / max_rows + 1;  // exponents per row
  std::string text;
  for (int top = highest; top >= lowest; top -= each) {
    const int bottom = top - each + 1;
    std::string line;
    for (const scaler_column& c : columns) {
      const bool here = c.lowest <= top && c.highest >= bottom;
      line += here ? (unicode ? "█" : "#") : " ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += cat(right(scale_label(top), scale_margin - 2), unicode ? " │" : " |", line, "\n");
  }
  std::string skips;
  for (const scaler_column& c : columns) skips += skip_mark(c, term.characters());
  skips.erase(skips.find_last_not_of(' ') + 1);
  text += cat(right("skipped", scale_margin - 2), unicode ? " │" : " |",
              skips.empty() ? skips : term.painted(paint::bad, skips), "\n");
  const std::string first = std::to_string(rows.front().step);
  const std::string last = std::to_string(rows.back().step);
  const std::size_t gap =
      columns.size() > first.size() + last.size() ? columns.size() - first.size() - last.size() : 1;
  text += cat(right("step", scale_margin - 2), "  ", first, std::string(gap, ' '), last, "\n");
  return text;
}

}  // namespace fpinspect
