// Loops over the elements of one chunk: implementation. Written for a compiler that vectorises them:
// words of one size, and no branches.
#include "backends/reference/statistics/chunk_loops.hpp"

#include "backends/self_test/build_flags.hpp"
#include "samebits/scalar.hpp"

namespace samebits::backends {
namespace {

constexpr std::size_t range_lanes = 16;

/// What is known of every range_lanes-th element.
template <class Value>
struct lane_figures {
  std::array<Value, range_lanes> min;
  std::array<Value, range_lanes> max;
  std::array<Value, range_lanes> min_nonzero;
  std::array<word_of<Value>, range_lanes> zeros{};
  std::array<word_of<Value>, range_lanes> nan{};

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
  [[nodiscard]] chunk_range result() const {
    chunk_range range;
    for (std::size_t i = 0; i < range_lanes; ++i) {
      range.combine({.zeros = static_cast<std::uint64_t>(zeros[i]),
                     .nan = static_cast<std::uint64_t>(nan[i]),
                     .min = static_cast<double>(min[i]) + 0.0,  // a zero is +0
                     .max = static_cast<double>(max[i]) + 0.0,
                     .min_nonzero = static_cast<double>(min_nonzero[i])});
    }
    return range;
  }
};

/// The range of elements with infinities, one element after another.
template <class Value>
chunk_range range_beside_infinities(std::span<const Value> chunk) {
  chunk_range range;
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

/// The smallest magnitude that overflows in a format; infinity if none does. Binary search: codes
/// have the order of magnitudes, and rounding is monotone.
double overflow_start_of(format_id format) {
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

}  // namespace

void chunk_range::combine(const chunk_range& other) {
  zeros += other.zeros;
  nan += other.nan;
  inf += other.inf;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  min_nonzero = std::min(min_nonzero, other.min_nonzero);
}

template <class Value>
chunk_range range_of(std::span<const Value> chunk) {
  lane_figures<Value> figures;
  std::size_t i = 0;
  for (; i + range_lanes <= chunk.size(); i += range_lanes) {
    figures.add(chunk.data() + i, range_lanes);
  }
  figures.add(chunk.data() + i, chunk.size() - i);
  const chunk_range range = figures.result();
  if (range.nan == chunk.size()) return range;  // also without elements
  const bool no_infinity = std::isfinite(range.min) && std::isfinite(range.max);
  return no_infinity ? range : range_beside_infinities(chunk);
}

cast_target::cast_target(format_id id)
    : format(id),
      overflow_start(overflow_start_of(id)),
      min_normal(static_cast<float>(decode_double(id, samebits::min_normal(id)))) {}

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

template chunk_range range_of(std::span<const float>);
template chunk_range range_of(std::span<const double>);
template cast_effect effect_of(const cast_target&, std::span<const float>, std::span<const float>,
                               const chunk_range&, double, chunk_tree&);
template cast_effect effect_of(const cast_target&, std::span<const double>, std::span<const float>,
                               const chunk_range&, double, chunk_tree&);

}  // namespace samebits::backends
