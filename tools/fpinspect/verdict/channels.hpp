// Outlier channels: columns of a matrix whose elements are far larger than those of the others.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/tensors/source/value_bits.hpp"

namespace fpinspect {

/// The column with the largest amax, and how far it stands out.
struct outlier_channel {
  std::uint64_t channel = 0;
  double ratio = 0;  ///< its amax over the median amax of the columns
};

/// The largest column if its amax is at least 16 times the median, which must not be 0. Nothing for
/// fewer than 8 columns.
std::optional<outlier_channel> outlier_among(std::span<const double> amaxes);

/// Collects the amax of each column from elements in C order. NaN and infinities do not count.
/// Value is float or double.
template <class Value>
class channel_meter {
 public:
  /// @param columns  size of the last dimension; 0 collects nothing
  explicit channel_meter(std::size_t columns) : amax_(columns) {}

  /// Adds consecutive elements.
  /// @param first  index of the first one in the tensor
  void add(std::uint64_t first, std::span<const Value> elements) {
    if (amax_.empty()) return;
    auto column = static_cast<std::size_t>(first % amax_.size());
    while (!elements.empty()) {
      const std::size_t size = std::min(elements.size(), amax_.size() - column);
      for (std::size_t i = 0; i < size; ++i) {
        const word_of<Value> magnitude = magnitude_word(elements[i]);
        const word_of<Value> finite = magnitude < infinity_word<Value> ? magnitude : 0;
        amax_[column + i] = std::max(amax_[column + i], finite);
      }
      elements = elements.subspan(size);
      column = 0;
    }
  }

  /// Adds what another meter has collected of other elements of the tensor.
  void combine(const channel_meter& other) {
    for (std::size_t i = 0; i < amax_.size(); ++i) amax_[i] = std::max(amax_[i], other.amax_[i]);
  }

  [[nodiscard]] std::optional<outlier_channel> outlier() const {
    std::vector<double> amaxes;
    amaxes.reserve(amax_.size());
    for (const word_of<Value> word : amax_) {
      amaxes.push_back(static_cast<double>(std::bit_cast<Value>(word)));
    }
    return outlier_among(amaxes);
  }

 private:
  std::vector<word_of<Value>> amax_;  ///< magnitude words
};

}  // namespace fpinspect
