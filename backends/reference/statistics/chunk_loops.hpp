// Loops over the elements of one chunk, as float or double: extremes, sums, the effect of a cast.
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

#include "samebits/cast_statistics.hpp"

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
  void combine(const chunk_range& other);
  [[nodiscard]] bool all_finite() const { return nan + inf == 0; }
  /// The largest finite magnitude, if there is one.
  [[nodiscard]] double amax() const { return std::max(std::fabs(min), std::fabs(max)); }
};

template <class Value>
chunk_range range_of(std::span<const Value> chunk);

/// A target format, with data that is computed once.
struct cast_target {
  explicit cast_target(format_id id);

  format_id format;
  double overflow_start;  ///< the smallest magnitude that overflows; infinity if none does
  float min_normal;
};

/// The effect of a cast on a chunk. The saturated sums are 0.
///
/// @param rounded  the elements rounded to the format
/// @param range  of the elements
/// @param squares  the root over the squares of the finite elements
template <class Value>
cast_effect effect_of(const cast_target& to, std::span<const Value> exact,
                      std::span<const float> rounded, const chunk_range& range, double squares,
                      chunk_tree& tree);

}  // namespace samebits::backends
