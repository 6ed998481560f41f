// Values of a format in an interval, and beside a number.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// Values of a format with equal spacing, in rising order.
struct even_values {
  double first;
  double last;
  std::uint64_t count;
  int spacing_log2;  ///< log2 of the distance to the next value
};

/// The values of a format in an interval [from, to), 0 <= from < to.
struct interval_values {
  std::uint64_t count = 0;
  std::uint64_t first_code = 0;       ///< of the smallest value; the codes of the others follow it
  std::vector<even_values> spacings;  ///< all values, by spacing
};

/// `from` and `to` are binary64 values.
interval_values values_between(samebits::format_id format, double from, double to);

/// Where a number lies between its neighbours.
struct spot {
  std::uint64_t below = 0;  ///< code of the largest value <= x
  std::uint64_t above = 0;  ///< code of the smallest value >= x
  std::uint64_t nearest = 0;
  /// log2 of the distance from the largest value <= x to the next one; nothing if there is no next
  /// one.
  std::optional<int> spacing_log2;
};

/// Returns nothing if x is not between the smallest and the largest value of the format.
std::optional<spot> spot_of(samebits::format_id format, double x);

}  // namespace fpinspect
