// The range of a tensor's elements: implementation.
#include "fpinspect/tensors/meters/range_meter.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fpinspect {

template <class Value>
void range_meter<Value>::count_exponents(std::span<const Value> elements) {
  constexpr word fraction_mask = (word{1} << fields::fraction_bits) - 1;
  constexpr word top = word{0x7ff} << (fields::fraction_bits - 11);  // fraction of 2 - 2^-11
  constexpr std::size_t block = 1024;
  std::array<word, block> places;  // first all places, in a loop that vectorises
  while (!elements.empty()) {
    const std::size_t size = std::min(block, elements.size());
    for (std::size_t i = 0; i < size; ++i) {
      const word magnitude = magnitude_word(elements[i]);
      const word fraction = magnitude & fraction_mask;
      const word kind = (fraction == 0 ? no_fraction : 0) | (fraction >= top ? top_fraction : 0);
      places[i] = kinds * (magnitude >> fields::fraction_bits) + kind;
    }
    std::size_t i = 0;
    for (; i + 2 <= size; i += 2) {
      ++counts_[0][static_cast<std::size_t>(places[i])];
      ++counts_[1][static_cast<std::size_t>(places[i + 1])];
    }
    if (i < size) ++counts_[0][static_cast<std::size_t>(places[i])];
    elements = elements.subspan(size);
  }
}

template <class Value>
void range_meter<Value>::count_subnormals(std::span<const Value> elements) {
  for (const Value x : elements) {
    const word magnitude = magnitude_word(x);
    if (magnitude == 0 || magnitude >> fields::fraction_bits != 0) continue;
    const auto bits = static_cast<std::uint64_t>(magnitude);
    const int leading = 63 - std::countl_zero(bits);
    const std::uint64_t fraction = bits << (fields::fraction_bits - leading);  // with leading bit
    binade_counts& to = subnormals_[static_cast<std::size_t>(leading)];
    ++to.all;
    to.powers += std::has_single_bit(bits) ? 1u : 0u;
    to.top += fraction >> (fields::fraction_bits - 11) == 0xfff ? 1u : 0u;
  }
}

template <class Value>
void range_meter<Value>::add(std::uint64_t first, std::span<const Value> elements) {
  const std::uint64_t subnormals_before = subnormals();
  const std::uint64_t nonfinite_before = nonfinite();
  count_exponents(elements);
  if (subnormals() != subnormals_before) count_subnormals(elements);
  if (nonfinite() != nonfinite_before && (!first_nonfinite_ || *first_nonfinite_ > first)) {
    const auto found =
        std::find_if(elements.begin(), elements.end(), [](Value x) { return !std::isfinite(x); });
    first_nonfinite_ = first + static_cast<std::uint64_t>(found - elements.begin());
  }
  // Two loops over maxima: GCC does not vectorise their union, nor a loop over minima above 0.
  word largest = 0;
  for (const Value x : elements) {
    const word magnitude = magnitude_word(x);
    largest = std::max(largest, magnitude < infinity_word<Value> ? magnitude : 0);
  }
  largest_ = std::max(largest_, largest);
  constexpr word top = std::numeric_limits<word>::max();
  word below_top = 0;  // distance of the smallest magnitude above 0 from top
  for (const Value x : elements) {
    const word magnitude = magnitude_word(x);
    below_top = std::max(below_top, magnitude != 0 ? top - magnitude : 0);
  }
  smallest_ = std::min(smallest_, top - below_top);
  channels_.add(first, elements);
}

template <class Value>
void range_meter<Value>::combine(const range_meter& other) {
  for (std::size_t i = 0; i < counts_[0].size(); ++i) {
    counts_[0][i] += other.counts_[0][i] + other.counts_[1][i];
  }
  for (std::size_t i = 0; i < subnormals_.size(); ++i) subnormals_[i].add(other.subnormals_[i]);
  largest_ = std::max(largest_, other.largest_);
  smallest_ = std::min(smallest_, other.smallest_);
  const bool earlier =
      other.first_nonfinite_ && (!first_nonfinite_ || *other.first_nonfinite_ < *first_nonfinite_);
  if (earlier) first_nonfinite_ = other.first_nonfinite_;
  channels_.combine(other.channels_);
}

template <class Value>
element_range range_meter<Value>::result() const {
  constexpr int bias = (1 << (fields::exponent_bits - 1)) - 1;
  constexpr std::size_t special = exponents - 1;
  element_range range;
  range.zeros = counted(0, no_fraction);
  range.inf = counted(special, no_fraction);
  range.nan = nonfinite() - range.inf;
  range.first_nonfinite = first_nonfinite_;
  std::uint64_t finite = range.zeros;
  const auto add_binade = [&](int exponent, const binade_counts& of) {
    if (of.all == 0) return;
    range.magnitudes[exponent] = of;
    finite += of.all;
  };
  for (std::size_t i = 0; i < subnormals_.size(); ++i) {
    add_binade(static_cast<int>(i) + 1 - bias - fields::fraction_bits, subnormals_[i]);
  }
  for (std::size_t e = 1; e < special; ++e) {
    const std::uint64_t powers = counted(e, no_fraction);
    const std::uint64_t top = counted(e, top_fraction);
    add_binade(static_cast<int>(e) - bias,
               {powers + top + counted(e, other_fraction), powers, top});
  }
  if (finite != 0) range.amax = static_cast<double>(std::bit_cast<Value>(largest_));
  if (finite != range.zeros) {
    range.min_nonzero = static_cast<double>(std::bit_cast<Value>(smallest_));
  }
  range.outlier = channels_.outlier();
  return range;
}

template class range_meter<float>;
template class range_meter<double>;

}  // namespace fpinspect
