// Outlier channels: columns of a matrix whose elements are far larger than those of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fpinspect {

/// The column with the largest amax, and how far it stands out.
struct outlier_channel {
  std::uint64_t channel = 0;
  double ratio = 0;  ///< its amax over the median amax of the columns
};

/// The largest column if its amax is at least 16 times the median, which must not be 0. Nothing for
/// fewer than 8 columns.
std::optional<outlier_channel> outlier_among(std::span<const double> amaxes);

/// Collects the amax of each column. Elements come in C order, in chunks of any size.
class channel_meter {
 public:
  /// @param columns  size of the last dimension; 0 collects nothing
  explicit channel_meter(std::size_t columns) : amax_(columns) {}

  void add(std::span<const double> elements);
  [[nodiscard]] std::optional<outlier_channel> outlier() const { return outlier_among(amax_); }

 private:
  std::vector<double> amax_;
  std::size_t next_ = 0;  ///< column of the next element
};

}  // namespace fpinspect
