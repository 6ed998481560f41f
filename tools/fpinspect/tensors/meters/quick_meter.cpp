// Extremes, counts and sums of a chunk: implementation. The loops are written for a compiler that
// vectorises them: words of one size, and no branches.
#include "fpinspect/tensors/meters/quick_meter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "fpinspect/tensors/source/value_bits.hpp"

namespace fpinspect {
namespace {

constexpr std::size_t lanes = 16;

/// What is known of every lanes-th element.
template <class Value>
struct lane_figures {
  std::array<Value, lanes> min;
  std::array<Value, lanes> max;
  std::array<Value, lanes> min_nonzero;
  std::array<word_of<Value>, lanes> zeros{};
  std::array<word_of<Value>, lanes> nan{};

  lane_figures() {
    min.fill(std::numeric_limits<Value>::infinity());
    max.fill(-std::numeric_limits<Value>::infinity());
    min_nonzero.fill(std::numeric_limits<Value>::infinity());
  }

  /// Comparisons with NaN are false, so a NaN changes no extreme.
  void add(const Value* x, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const Value magnitude = std::fabs(x[i]);
      const Value nonzero = magnitude == 0 ? std::numeric_limits<Value>::infinity() : magnitude;
      min[i] = x[i] < min[i] ? x[i] : min[i];
      max[i] = x[i] > max[i] ? x[i] : max[i];
      min_nonzero[i] = nonzero < min_nonzero[i] ? nonzero : min_nonzero[i];
      zeros[i] += magnitude == 0 ? 1 : 0;
      nan[i] += std::isnan(x[i]) ? 1 : 0;
    }
  }

  /// The figures of all lanes; infinities still count as numbers.
  [[nodiscard]] quick_range result() const {
    quick_range range;
    for (std::size_t i = 0; i < lanes; ++i) {
      quick_range lane;
      lane.zeros = static_cast<std::uint64_t>(zeros[i]);
      lane.nan = static_cast<std::uint64_t>(nan[i]);
      lane.min = static_cast<double>(min[i]) + 0.0;  // a zero is +0
      lane.max = static_cast<double>(max[i]) + 0.0;
      lane.min_nonzero = static_cast<double>(min_nonzero[i]);
      range.combine(lane);
    }
    return range;
  }
};

/// The range of elements with infinities, one element after another.
template <class Value>
quick_range range_beside_infinities(std::span<const Value> chunk) {
  quick_range range;
  for (const Value value : chunk) {
    const auto x = static_cast<double>(value) + 0.0;
    range.nan += std::isnan(x) ? 1u : 0u;
    range.inf += std::isinf(x) ? 1u : 0u;
    if (!std::isfinite(x)) continue;
    range.zeros += x == 0 ? 1u : 0u;
    range.min = std::min(range.min, x);
    range.max = std::max(range.max, x);
    if (x != 0) range.min_nonzero = std::min(range.min_nonzero, std::fabs(x));
  }
  return range;
}

}  // namespace

void quick_range::combine(const quick_range& other) {
  zeros += other.zeros;
  nan += other.nan;
  inf += other.inf;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  min_nonzero = std::min(min_nonzero, other.min_nonzero);
}

template <class Value>
quick_range quick_range_of(std::span<const Value> chunk) {
  lane_figures<Value> figures;
  std::size_t i = 0;
  for (; i + lanes <= chunk.size(); i += lanes) figures.add(chunk.data() + i, lanes);
  figures.add(chunk.data() + i, chunk.size() - i);
  const quick_range range = figures.result();
  if (range.nan == chunk.size()) return range;  // also without elements
  const bool all_finite = std::isfinite(range.min) && std::isfinite(range.max);
  return all_finite ? range : range_beside_infinities(chunk);
}

template <class Value>
quick_sums quick_sums_of(std::span<const Value> chunk, bool all_finite, int log2,
                         chunk_tree& tree) {
  const Value* const x = chunk.data();
  const auto sums = [&](const auto& number) -> quick_sums {
    return {tree.root_over(chunk.size(), number),
            tree.root_over(chunk.size(), [&](std::size_t i) { return number(i) * number(i); })};
  };
  if (all_finite && log2 == 0) {
    return sums([x](std::size_t i) { return static_cast<double>(x[i]); });
  }
  return sums([x, log2](std::size_t i) {
    const bool finite = magnitude_word(x[i]) < infinity_word<Value>;
    return finite ? std::ldexp(static_cast<double>(x[i]), log2) : 0.0;
  });
}

template quick_range quick_range_of(std::span<const float>);
template quick_range quick_range_of(std::span<const double>);
template quick_sums quick_sums_of(std::span<const float>, bool, int, chunk_tree&);
template quick_sums quick_sums_of(std::span<const double>, bool, int, chunk_tree&);

}  // namespace fpinspect
