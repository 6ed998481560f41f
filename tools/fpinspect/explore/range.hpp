// Ranges of formats on one axis of decades.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// The positive values of a format, as powers of ten.
struct decade_range {
  samebits::format_id format;
  double minimum;     ///< log10 of the smallest positive value
  double min_normal;  ///< log10 of the smallest normal value
  double maximum;     ///< log10 of the largest finite value
};

decade_range decade_range_of(samebits::format_id format);

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
decade_axis decade_axis_of(std::span<const decade_range> ranges, int room);

/// The values of a format that fall into a column.
enum class column_band : std::uint8_t { none, subnormal, both, normal };

/// Returns one band per column of the axis.
std::vector<column_band> bands_of(const decade_range& range, const decade_axis& axis);

}  // namespace fpinspect
