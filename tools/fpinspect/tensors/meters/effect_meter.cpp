// What one format does to consecutive elements: implementation. The loops over elements are written
// for a compiler that vectorises them: words of one size, and no branches.
#include "fpinspect/tensors/meters/effect_meter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "fpinspect/tensors/source/value_bits.hpp"
#include "samebits/scalar.hpp"

namespace fpinspect {
namespace {

using samebits::format_id;

/// The smallest magnitude that overflows in a format; infinity if none does. Binary search: codes
/// have the order of magnitudes, and rounding is monotone.
double overflow_start_of(format_id format) {
  std::uint64_t below = 0;
  auto start = std::bit_cast<std::uint64_t>(std::numeric_limits<double>::infinity());
  while (start - below > 1) {
    const std::uint64_t middle = below + (start - below) / 2;
    (samebits::convert_code(format_id::fp64, format, middle).overflow ? start : below) = middle;
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

/// Counts of one chunk, in words that vectorise together with those of the elements.
template <class Word>
struct chunk_counts {
  Word underflow = 0, subnormal = 0, overflow = 0, to_inf = 0, to_nan = 0, to_max = 0, changed = 0;
};

/// A target format's borders as magnitude words of the elements.
template <class Value>
struct target_words {
  explicit target_words(const target_format& to)
      : overflow_start(magnitude_word(at_least<Value>(to.overflow_start))),
        min_normal(magnitude_word(static_cast<Value>(to.min_normal))) {}

  word_of<Value> overflow_start;
  word_of<Value> min_normal;
};

template <class Value>
chunk_counts<word_of<Value>> count(const target_words<Value>& to, std::span<const Value> exact,
                                   std::span<const float> rounded) {
  using word = word_of<Value>;
  constexpr word inf = infinity_word<Value>;
  chunk_counts<word> n;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const auto y_value = static_cast<Value>(rounded[i]);
    const word x = magnitude_word(exact[i]);
    const word y = magnitude_word(y_value);
    const word finite = x < inf ? 1 : 0;
    const word some = x != 0 ? finite : 0;
    const word y_finite = y < inf ? 1 : 0;
    const word y_nan = y > inf ? 1 : 0;
    const word x_nan = x > inf ? 1 : 0;
    const word y_zero = y == 0 ? 1 : 0;
    n.underflow += some & y_zero;
    n.subnormal += some & (y_zero ^ 1) & (y < to.min_normal ? 1 : 0);
    n.overflow += finite & (x >= to.overflow_start ? 1 : 0);
    n.to_inf += finite & (y == inf ? 1 : 0);
    n.to_nan += (x_nan ^ 1) & y_nan;
    n.to_max += (finite ^ 1) & y_finite;
    n.changed += ((x == y ? 1 : 0) | (x_nan & y_nan)) ^ 1;  // rounding keeps the sign
  }
  return n;
}

/// The counts of a chunk in which nothing overflows and all numbers are finite, before and after.
/// Nothing for other chunks.
template <class Value>
std::optional<chunk_counts<word_of<Value>>> count_ordinary(const target_words<Value>& to,
                                                           std::span<const Value> exact,
                                                           std::span<const float> rounded,
                                                           std::size_t zeros) {
  using word = word_of<Value>;
  chunk_counts<word> n;
  word y_zeros = 0;
  word below_normal = 0;
  word largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const word y = magnitude_word(static_cast<Value>(rounded[i]));
    y_zeros += y == 0 ? 1 : 0;
    below_normal += y < to.min_normal ? 1 : 0;
    n.changed += magnitude_word(exact[i]) != y ? 1 : 0;
    largest = std::max(largest, y);
  }
  if (largest >= infinity_word<Value>) return std::nullopt;
  n.underflow = y_zeros - static_cast<word>(zeros);  // zeros stay zeros
  n.subnormal = below_normal - y_zeros;
  return n;
}

template <class Value>
double squared(Value x) {
  return static_cast<double>(x) * static_cast<double>(x);
}

template <class Value>
double squared_difference(Value x, float y) {
  const double d = static_cast<double>(x) - static_cast<double>(y);
  return d * d;
}

template <class Value>
bool is_finite(Value x) {
  return magnitude_word(x) < infinity_word<Value>;
}

}  // namespace

target_format::target_format(format_id id)
    : format(id),
      overflow_start(overflow_start_of(id)),
      min_normal(static_cast<float>(samebits::decode_double(id, samebits::min_normal(id)))) {}

template <class Value>
void effect_meter::begin(std::span<const Value> exact) {
  const Value* const x = exact.data();
  word_of<Value> zeros = 0;
  word_of<Value> largest = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const word_of<Value> magnitude = magnitude_word(x[i]);
    zeros += magnitude == 0 ? 1 : 0;
    largest = std::max(largest, magnitude);
  }
  zeros_ = static_cast<std::size_t>(zeros);
  largest_ = static_cast<double>(std::bit_cast<Value>(largest));
  if (std::isfinite(largest_)) {
    signal_ = tree_.root_over(exact.size(), [x](std::size_t i) { return squared(x[i]); });
  } else {
    signal_ = tree_.root_over(exact.size(),
                              [x](std::size_t i) { return is_finite(x[i]) ? squared(x[i]) : 0.0; });
  }
}

template <class Value>
format_effect effect_meter::effect(const target_format& to, std::span<const Value> exact,
                                   std::span<const float> rounded) {
  const target_words<Value> words(to);
  const Value* const x = exact.data();
  const float* const y = rounded.data();
  std::optional<chunk_counts<word_of<Value>>> n;
  // false for NaN and infinities
  if (largest_ < to.overflow_start && largest_ <= std::numeric_limits<double>::max()) {
    n = count_ordinary(words, exact, rounded, zeros_);
  }
  const bool ordinary = n.has_value();
  if (!ordinary) n = count(words, exact, rounded);
  const auto of = [](word_of<Value> number) { return static_cast<std::uint64_t>(number); };
  format_effect result{.format = to.format,
                       .underflow = of(n->underflow),
                       .subnormal = of(n->subnormal),
                       .overflow = of(n->overflow),
                       .to_inf = of(n->to_inf),
                       .to_nan = of(n->to_nan),
                       .to_max = of(n->to_max),
                       .changed = of(n->changed),
                       .signal = signal_};
  if (n->changed == 0) return result;  // no noise, and nothing became Inf or NaN
  if (ordinary) {
    result.noise = tree_.root_over(
        exact.size(), [x, y](std::size_t i) { return squared_difference(x[i], y[i]); });
    return result;
  }
  const auto paired = [x, y](std::size_t i) { return is_finite(x[i]) && is_finite(y[i]); };
  result.noise = tree_.root_over(exact.size(), [=](std::size_t i) {
    return paired(i) ? squared_difference(x[i], y[i]) : 0.0;
  });
  result.signal =
      tree_.root_over(exact.size(), [=](std::size_t i) { return paired(i) ? squared(x[i]) : 0.0; });
  return result;
}

template void effect_meter::begin(std::span<const float>);
template void effect_meter::begin(std::span<const double>);
template format_effect effect_meter::effect(const target_format&, std::span<const float>,
                                            std::span<const float>);
template format_effect effect_meter::effect(const target_format&, std::span<const double>,
                                            std::span<const float>);

}  // namespace fpinspect
