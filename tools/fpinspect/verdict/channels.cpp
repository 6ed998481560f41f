// Outlier channels: implementation.
#include "fpinspect/verdict/channels.hpp"

#include <algorithm>
#include <vector>

namespace fpinspect {

std::optional<outlier_channel> outlier_among(std::span<const double> amaxes) {
  constexpr std::size_t fewest = 8;
  constexpr double stands_out = 16.0;
  if (amaxes.size() < fewest) return std::nullopt;
  const auto largest = std::max_element(amaxes.begin(), amaxes.end());
  std::vector<double> sorted(amaxes.begin(), amaxes.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (*middle <= 0 || *largest < stands_out * *middle) return std::nullopt;
  return outlier_channel{static_cast<std::uint64_t>(largest - amaxes.begin()), *largest / *middle};
}

}  // namespace fpinspect
