// Loops over the elements of one chunk, as float or double: extremes, sums, the effect of a cast.
// Written for a compiler that vectorises them: words of one size, and no branches.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "backends/self_test/build_flags.hpp"
#include "samebits/cast_statistics.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends {

/// Number of elements of a chunk: a subtree of contract §6's tree.
inline constexpr std::size_t statistics_chunk = std::size_t{1} << 15;

template <class Value>
struct value_fields;
template <>
struct value_fields<float> {
  using word = std::int32_t;
  static constexpr int fraction_bits = 23;
  static constexpr int exponent_bits = 8;
};
template <>
struct value_fields<double> {
  using word = std::int64_t;
  static constexpr int fraction_bits = 52;
  static constexpr int exponent_bits = 11;
};

/// Signed: SSE2 compares and selects the largest of signed 32-bit words alone.
template <class Value>
using word_of = typename value_fields<Value>::word;

/// The bits without the sign. Magnitudes have the order of these words, which are never negative.
template <class Value>
constexpr word_of<Value> magnitude_word(Value x) {
  return std::bit_cast<word_of<Value>>(x) & std::numeric_limits<word_of<Value>>::max();
}

template <class Value>
constexpr word_of<Value> infinity_word =
    ((word_of<Value>{1} << value_fields<Value>::exponent_bits) - 1)
    << value_fields<Value>::fraction_bits;

template <class Value>
constexpr bool is_finite(Value x) {
  return magnitude_word(x) < infinity_word<Value>;
}

/// The memory for the levels of a tree over the inputs of a chunk.
class chunk_tree {
 public:
  /// The root over the inputs input(i), i in [0, size); +0 if size is 0.
  template <class Input>
  double root_over(std::size_t size, const Input& input) {
    std::array<double, statistics_chunk / block> roots{};
    std::size_t blocks = 0;
    for (std::size_t first = 0; first < size; first += block) {
      const std::size_t part = std::min(block, size - first);
      const std::size_t pairs = part / 2;
      for (std::size_t i = 0; i < pairs; ++i) {
        inputs_[i] = input(first + 2 * i) + input(first + 2 * i + 1);
      }
      if (part % 2 != 0) inputs_[pairs] = input(first + part - 1);
      roots[blocks++] = root_of_inputs(pairs + part % 2);
    }
    std::copy_n(roots.begin(), blocks, inputs_.begin());
    return root_of_inputs(blocks);
  }

  /// The root over f(x * 2^log2) of the finite elements x and +0 for the others.
  template <class Value, class Function>
  double root_of_finite(std::span<const Value> elements, bool all_finite, int log2,
                        const Function& f) {
    const Value* const x = elements.data();
    if (all_finite && log2 == 0) {
      return root_over(elements.size(),
                       [=](std::size_t i) { return f(static_cast<double>(x[i])); });
    }
    return root_over(elements.size(), [=](std::size_t i) {
      return is_finite(x[i]) ? f(std::ldexp(static_cast<double>(x[i]), log2)) : 0.0;
    });
  }

 private:
  static constexpr std::size_t block =
      4096;  // inputs: half as many sums, 16 KiB, stay in the L1 cache

  /// The root over inputs_[0, size).
  double root_of_inputs(std::size_t size) {
    double* from = inputs_.data();
    double* to = sums_.data();
    while (size > 1) {
      if (size % 2 != 0) from[size++] = -0.0;  // x + -0 is x, for -0 too
      size /= 2;
      for (std::size_t i = 0; i < size; ++i) to[i] = from[2 * i] + from[2 * i + 1];
      std::swap(from, to);
    }
    return size == 0 ? 0.0 : from[0];
  }

  std::array<double, block / 2> inputs_{};
  std::array<double, block / 4> sums_{};
};

inline double square_of(double x) { return x * x; }

/// Counts and extremes of elements. NaN and infinities are only counted.
struct chunk_range {
  std::uint64_t zeros = 0;  ///< of either sign
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double min_nonzero = std::numeric_limits<double>::infinity();  ///< smallest non-zero magnitude

  /// Adds the counts and extremes of other elements.
  void combine(const chunk_range& other) {
    zeros += other.zeros;
    nan += other.nan;
    inf += other.inf;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    min_nonzero = std::min(min_nonzero, other.min_nonzero);
  }
  [[nodiscard]] bool all_finite() const { return nan + inf == 0; }
  /// The largest finite magnitude, if there is one.
  [[nodiscard]] double amax() const { return std::max(std::fabs(min), std::fabs(max)); }
};

inline constexpr std::size_t range_lanes = 16;

/// What is known of every range_lanes-th element. Without any_infinity, infinities are numbers.
template <class Value, bool any_infinity>
struct lane_figures {
  static constexpr Value infinity = std::numeric_limits<Value>::infinity();
  using counts = std::array<word_of<Value>, range_lanes>;
  std::array<Value, range_lanes> min, max, min_nonzero;
  counts zeros{}, nan{}, inf{};

  lane_figures() {
    min.fill(infinity);
    max.fill(-infinity);
    min_nonzero.fill(infinity);
  }

  /// Comparisons with NaN are false, so a NaN changes no extreme.
  void add(const Value* x, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const Value magnitude = std::fabs(x[i]);
      const Value nonzero = magnitude == 0 ? infinity : magnitude;
      const bool is_infinite = any_infinity && magnitude == infinity;
      const Value below = is_infinite ? infinity : x[i];
      const Value above = is_infinite ? -infinity : x[i];
      min[i] = below < min[i] ? below : min[i];
      max[i] = above > max[i] ? above : max[i];
      min_nonzero[i] = nonzero < min_nonzero[i] ? nonzero : min_nonzero[i];
      zeros[i] += magnitude == 0 ? 1 : 0;
      inf[i] += is_infinite ? 1 : 0;
      nan[i] += std::isnan(x[i]) ? 1 : 0;
    }
  }

  [[nodiscard]] chunk_range result() const {
    chunk_range range;
    for (std::size_t i = 0; i < range_lanes; ++i) {
      range.combine({static_cast<std::uint64_t>(zeros[i]), static_cast<std::uint64_t>(nan[i]),
                     static_cast<std::uint64_t>(inf[i]),
                     static_cast<double>(min[i]) + 0.0,  // a zero is +0
                     static_cast<double>(max[i]) + 0.0, static_cast<double>(min_nonzero[i])});
    }
    return range;
  }
};

template <class Value, bool any_infinity = false>
chunk_range range_of(std::span<const Value> chunk) {
  lane_figures<Value, any_infinity> figures;
  std::size_t i = 0;
  for (; i + range_lanes <= chunk.size(); i += range_lanes) {
    figures.add(chunk.data() + i, range_lanes);
  }
  figures.add(chunk.data() + i, chunk.size() - i);
  const chunk_range range = figures.result();
  if (any_infinity || range.nan == chunk.size() || std::isfinite(range.max - range.min)) {
    return range;
  }
  return range_of<Value, true>(chunk);  // an infinity, or extremes beyond half of binary64
}

/// The smallest magnitude that overflows in a format; infinity if none does. Binary search: codes
/// have the order of magnitudes, and rounding is monotone.
inline double overflow_start_of(format_id format) {
  std::uint64_t below = 0;
  auto start = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  while (start - below > 1) {
    const std::uint64_t middle = below + (start - below) / 2;
    (convert_code(format_id::fp64, format, middle).overflow ? start : below) = middle;
  }
  return std::bit_cast<double>(start);
}

/// The smallest Value that is not below `x`.
template <class Value>
Value at_least(double x) {
  const auto nearest = static_cast<Value>(x);
  const bool below = static_cast<double>(nearest) < x;
  return below ? std::nextafter(nearest, std::numeric_limits<Value>::infinity()) : nearest;
}

/// A target format, with data that is computed once.
struct cast_target {
  explicit cast_target(format_id id)
      : format(id),
        overflow_start(overflow_start_of(id)),
        min_normal(static_cast<float>(decode_double(id, samebits::min_normal(id)))) {}

  format_id format;
  double overflow_start;  ///< the smallest magnitude that overflows; infinity if none does
  float min_normal;
};

/// Counts the elements of a chunk that a cast changes.
template <class Value>
struct change_counter {
  using word = word_of<Value>;
  static constexpr word inf = infinity_word<Value>;

  const cast_target& to;
  const std::span<const Value> exact;
  const float* const rounded;
  const word min_normal = magnitude_word(static_cast<Value>(to.min_normal));

  [[nodiscard]] word rounded_word(std::size_t i) const {
    return magnitude_word(static_cast<Value>(rounded[i]));
  }

  [[nodiscard]] cast_effect count_any() const {
    const word overflow_start = magnitude_word(at_least<Value>(to.overflow_start));
    word underflow = 0, subnormal = 0, overflow = 0, to_inf = 0, to_nan = 0, to_max = 0;
    word changed = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const word x = magnitude_word(exact[i]);
      const word y = rounded_word(i);
      const word finite = x < inf ? 1 : 0;
      const word some = x != 0 ? finite : 0;
      const word y_finite = y < inf ? 1 : 0;
      const word y_nan = y > inf ? 1 : 0;
      const word x_nan = x > inf ? 1 : 0;
      const word y_zero = y == 0 ? 1 : 0;
      underflow += some & y_zero;
      subnormal += some & (y_zero ^ 1) & (y < min_normal ? 1 : 0);
      overflow += finite & (x >= overflow_start ? 1 : 0);
      to_inf += finite & (y == inf ? 1 : 0);
      to_nan += (x_nan ^ 1) & y_nan;
      to_max += (finite ^ 1) & y_finite;
      changed += ((x == y ? 1 : 0) | (x_nan & y_nan)) ^ 1;  // rounding keeps the sign
    }
    const auto of = [](word number) { return static_cast<std::uint64_t>(number); };
    return {to.format,  of(underflow), of(subnormal), of(overflow),
            of(to_inf), of(to_nan),    of(to_max),    of(changed)};
  }

  /// Counts a chunk in which nothing overflows and all numbers are finite before the cast. Returns
  /// whether they also are after it.
  [[nodiscard]] bool count_ordinary(std::uint64_t zeros, cast_effect& counts) const {
    word y_zeros = 0, below_normal = 0, changed = 0, largest = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      const word y = rounded_word(i);
      y_zeros += y == 0 ? 1 : 0;
      below_normal += y < min_normal ? 1 : 0;
      changed += magnitude_word(exact[i]) != y ? 1 : 0;
      largest = std::max(largest, y);
    }
    counts = {.format = to.format};
    counts.underflow = static_cast<std::uint64_t>(y_zeros) - zeros;  // zeros stay zeros
    counts.subnormal = static_cast<std::uint64_t>(below_normal - y_zeros);
    counts.changed = static_cast<std::uint64_t>(changed);
    return largest < inf;
  }
};

/// The effect of a cast on a chunk. The saturated sums are 0.
///
/// @param rounded  the elements rounded to the format
/// @param range  of the elements
/// @param squares  the root over the squares of the finite elements
template <class Value>
cast_effect effect_of(const cast_target& to, std::span<const Value> exact,
                      std::span<const float> rounded, const chunk_range& range, double squares,
                      chunk_tree& tree) {
  const Value* const x = exact.data();
  const float* const y = rounded.data();
  const auto squared_difference = [x, y](std::size_t i) {
    return square_of(static_cast<double>(x[i]) - static_cast<double>(y[i]));
  };
  const change_counter<Value> counter{to, exact, y};
  cast_effect effect;
  const bool ordinary = range.all_finite() && range.amax() < to.overflow_start &&
                        counter.count_ordinary(range.zeros, effect);
  if (!ordinary) effect = counter.count_any();
  effect.signal = squares;
  if (effect.changed == 0) return effect;  // no noise, and nothing became Inf or NaN
  if (ordinary) {
    effect.noise = tree.root_over(exact.size(), squared_difference);
    return effect;
  }
  const auto paired = [x, y](std::size_t i) { return is_finite(x[i]) && is_finite(y[i]); };
  effect.noise = tree.root_over(
      exact.size(), [=](std::size_t i) { return paired(i) ? squared_difference(i) : 0.0; });
  effect.signal = tree.root_over(exact.size(), [=](std::size_t i) {
    return paired(i) ? square_of(static_cast<double>(x[i])) : 0.0;
  });
  return effect;
}

}  // namespace samebits::backends
