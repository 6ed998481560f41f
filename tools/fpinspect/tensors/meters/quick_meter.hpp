// Extremes, counts and sums of a chunk of elements, in a few vectorised loops.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "fpinspect/tensors/meters/chunk_tree.hpp"

namespace fpinspect {

/// Counts and extremes of elements. NaN and infinities are only counted.
struct quick_range {
  std::uint64_t zeros = 0;  ///< of either sign
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double min_nonzero = std::numeric_limits<double>::infinity();  ///< smallest non-zero magnitude

  /// Adds the counts and extremes of other elements.
  void combine(const quick_range& other);
};

/// Partial sums over the tree of contract §6; elements that are not finite add +0.
struct quick_sums {
  double sum = 0;      ///< of x
  double squares = 0;  ///< of RN64(x * x)
};

/// Value is float or double. A chunk has up to chunk_elements elements.
template <class Value>
quick_range quick_range_of(std::span<const Value> chunk);

/// The sums over the elements times 2^log2, in binary64.
template <class Value>
quick_sums quick_sums_of(std::span<const Value> chunk, bool all_finite, int log2, chunk_tree& tree);

}  // namespace fpinspect
