// Outlier channels: columns of a matrix whose elements are far larger than those of the others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace fpinspect {

/// The column with the largest amax, and how far it stands out.
struct outlier_channel {
  std::uint64_t channel = 0;
  double ratio = 0;  ///< its amax over the median amax of the columns
};

/// The largest column if its amax is at least 16 times the median, which must not be 0. Nothing for
/// fewer than 8 columns.
std::optional<outlier_channel> outlier_among(std::span<const double> amaxes);

}  // namespace fpinspect
