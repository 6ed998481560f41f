// Counts of elements by power of two, amax of rows and columns, and the search for percentiles.
// Elements are float or double (Value). The loops are written for a compiler that vectorises them.
#pragma once

#include <atomic>
#include <map>
#include <numeric>
#include <type_traits>
#include <vector>

#include "backends/reference/statistics/chunk_loops.hpp"

namespace samebits::backends {

/// Counts elements by power of two.
template <class Value>
class binade_counter {
 public:
  void add(std::span<const Value> elements) {
    constexpr word fraction_mask = (word{1} << fields::fraction_bits) - 1;
    constexpr word top = word{0x7ff} << (fields::fraction_bits - 11);  // fraction of 2 - 2^-11
    constexpr std::size_t block = 1024;
    const std::uint64_t subnormals_before = subnormals();
    std::array<word, block> places;  // first all places, in a loop that vectorises
    for (std::size_t first = 0; first < elements.size(); first += block) {
      const std::size_t size = std::min(block, elements.size() - first);
      for (std::size_t i = 0; i < size; ++i) {
        const word magnitude = magnitude_word(elements[first + i]);
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
    }
    if (subnormals() != subnormals_before) count_subnormals(elements);
  }
  void combine(const binade_counter& other) {
    for (std::size_t i = 0; i < counts_[0].size(); ++i) {
      counts_[0][i] += other.counts_[0][i] + other.counts_[1][i];
    }
    for (std::size_t i = 0; i < subnormals_.size(); ++i) subnormals_[i].add(other.subnormals_[i]);
  }
  /// The counts of finite non-zero elements.
  [[nodiscard]] std::map<int, binade_counts> result() const {
    constexpr int bias = (1 << (fields::exponent_bits - 1)) - 1;
    std::map<int, binade_counts> binades;
    const auto add = [&](int exponent, const binade_counts& counts) {
      if (counts.all != 0) binades[exponent] = counts;
    };
    for (std::size_t i = 0; i < subnormals_.size(); ++i) {
      add(static_cast<int>(i) + 1 - bias - fields::fraction_bits, subnormals_[i]);
    }
    for (std::size_t e = 1; e + 1 < exponents; ++e) {
      const std::uint64_t powers = counted(e, no_fraction);
      const std::uint64_t top = counted(e, top_fraction);
      add(static_cast<int>(e) - bias, {powers + top + counted(e, other_fraction), powers, top});
    }
    return binades;
  }

 private:
  using fields = value_fields<Value>;
  using word = word_of<Value>;

  /// Elements of one biased exponent by their fraction: 0, at least that of 2 - 2^-11, any other.
  enum fraction_kind : std::uint8_t { other_fraction, no_fraction, top_fraction, kinds = 4 };
  static constexpr std::size_t exponents = std::size_t{1} << fields::exponent_bits;
  using table = std::array<std::uint64_t, kinds * exponents>;

  [[nodiscard]] std::uint64_t counted(std::size_t exponent, fraction_kind kind) const {
    return counts_[0][kinds * exponent + kind] + counts_[1][kinds * exponent + kind];
  }
  [[nodiscard]] std::uint64_t subnormals() const {
    return counted(0, other_fraction) + counted(0, top_fraction);
  }
  void count_subnormals(std::span<const Value> elements) {
    for (const Value x : elements) {
      const word magnitude = magnitude_word(x);
      if (magnitude == 0 || magnitude >> fields::fraction_bits != 0) continue;
      const auto bits = static_cast<std::uint64_t>(magnitude);
      const int leading = 63 - std::countl_zero(bits);
      const std::uint64_t fraction = bits << (fields::fraction_bits - leading);  // with leading bit
      const bool top = fraction >> (fields::fraction_bits - 11) == 0xfff;
      subnormals_[static_cast<std::size_t>(leading)].add(
          {1, std::has_single_bit(bits) ? 1u : 0u, top ? 1u : 0u});
    }
  }

  /// Two tables that take turns: neighbours in one binade then do not wait for each other's count.
  std::array<table, 2> counts_{};
  /// Subnormal elements by the position of their leading bit.
  std::array<binade_counts, fields::fraction_bits> subnormals_{};
};

/// The amax of rows or columns as magnitude words; -1: no finite element.
template <class Value>
using amax_words = std::vector<word_of<Value>>;

/// Adds consecutive elements of a matrix to the amaxes of its rows and columns.
///
/// @param first  index of the first element in the matrix
/// @param rows  empty if they are not wanted; threads may share them
/// @param columns  empty if they are not wanted
template <class Value>
void add_channels(std::uint64_t first, std::size_t row_size, std::span<const Value> elements,
                  amax_words<Value>& rows, amax_words<Value>& columns) {
  using word = word_of<Value>;
  const auto finite_word = [](Value x) {
    const word magnitude = magnitude_word(x);
    return magnitude < infinity_word<Value> ? magnitude : word{-1};
  };
  auto row = static_cast<std::size_t>(first / row_size);
  auto column = static_cast<std::size_t>(first % row_size);
  for (; !elements.empty(); ++row, column = 0) {
    const std::size_t size = std::min(elements.size(), row_size - column);
    const Value* const x = elements.data();
    if (!columns.empty()) {
      word* const amax = columns.data() + column;
      for (std::size_t i = 0; i < size; ++i) amax[i] = std::max(amax[i], finite_word(x[i]));
    }
    if (!rows.empty()) {
      word amax = -1;
      for (std::size_t i = 0; i < size; ++i) amax = std::max(amax, finite_word(x[i]));
      const std::atomic_ref<word> shared(
          rows[row]);  // another thread may have the row's other part
      word before = shared.load(std::memory_order_relaxed);
      while (before < amax && !shared.compare_exchange_weak(before, amax)) {
      }
    }
    elements = elements.subspan(size);
  }
}

template <class Value>
std::vector<double> values_of(const amax_words<Value>& words) {
  std::vector<double> values(words.size());
  std::transform(words.begin(), words.end(), values.begin(), [](word_of<Value> word) {
    return word < 0 ? -1.0 : static_cast<double>(std::bit_cast<Value>(word));
  });
  return values;
}

/// The position of a percentile among `all` > 0 sorted numbers, from 0.
inline std::uint64_t percentile_rank(int percentage, std::uint64_t all) {
  const auto percent = static_cast<std::uint64_t>(percentage);
  const std::uint64_t numbers = all / 100 * percent + (all % 100 * percent + 99) / 100;
  return std::max<std::uint64_t>(numbers, 1) - 1;
}

/// Up to this many numbers, percentiles are selected; the counters of a search would cost more.
inline constexpr std::int64_t few_numbers = 1 << 13;

/// The percentiles of few numbers in the order of `percentages`; empty without finite ones.
template <class Value>
std::vector<double> select_percentiles(std::span<const Value> elements) {
  std::vector<Value> numbers;
  std::copy_if(elements.begin(), elements.end(), std::back_inserter(numbers), is_finite<Value>);
  std::vector<double> values;
  if (numbers.empty()) return values;
  auto first = numbers.begin();  // all numbers before it are no larger than those from it on
  for (const int percentage : percentages) {
    const auto rank = percentile_rank(percentage, numbers.size());
    const auto at = numbers.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(first, at, numbers.end());
    values.push_back(static_cast<double>(*at) + 0.0);  // a zero is +0
    first = at;
  }
  return values;
}

/// Finds percentiles of finite numbers by keys that have their order. Each pass over the numbers
/// counts them by the next 16 bits of those keys that may still be a percentile's.
template <class Value>
class percentile_search {
 public:
  /// @param format  holds all numbers
  explicit percentile_search(format_id format)
      : digits_((fields::exponent_bits + spec_of(format).mantissa_bits) / digit_bits + 1),
        prefixes_(1) {}

  [[nodiscard]] bool done() const { return prefixes_.empty() || known_ == digits_; }
  /// Number of counters of one thread in this pass.
  [[nodiscard]] std::size_t counters() const {
    return radix * (known_ == 0 ? 2 : prefixes_.size());
  }
  /// Counts the numbers of a chunk. Any number of threads may call this in a pass.
  void count(std::span<const Value> elements, std::span<std::uint64_t> counters) const {
    constexpr int top = key_bits - digit_bits;
    if (known_ == 0) {  // two tables that take turns, as in binade_counter
      for (std::size_t i = 0; i < elements.size(); ++i) {
        ++counters[(i % 2 << digit_bits) + (key_of(elements[i]) >> top)];
      }
      return;
    }
    const int shift = top - digit_bits * known_;
    for (const Value x : elements) {
      const key k = key_of(x);
      std::size_t group = groups_[k >> top];
      if (group == 0) continue;
      const key start = k >> shift;
      for (--group; group < prefixes_.size() && prefixes_[group] <= start >> digit_bits; ++group) {
        if (prefixes_[group] == start >> digit_bits) {
          ++counters[(group << digit_bits) + start % radix];
        }
      }
    }
  }
  /// Ends a pass.
  /// @param counters  the sums over all threads
  void next(std::span<std::uint64_t> counters) {
    if (known_ == 0) set_ranks(counters);
    if (done()) return;
    for (target& t : targets_) {
      const auto group = std::lower_bound(prefixes_.begin(), prefixes_.end(), t.prefix);
      const auto counts = counters.subspan(
          static_cast<std::size_t>(group - prefixes_.begin()) << digit_bits, radix);
      key digit = 0;
      for (; t.rank >= counts[digit]; ++digit) t.rank -= counts[digit];
      t.prefix = static_cast<key>(t.prefix << digit_bits | digit);
    }
    ++known_;
    prefixes_.clear();
    groups_.assign(radix, 0);
    for (const target& t : targets_) {  // their prefixes are in order
      if (prefixes_.empty() || prefixes_.back() != t.prefix) prefixes_.push_back(t.prefix);
      std::uint8_t& group = groups_[t.prefix >> (digit_bits * (known_ - 1))];
      if (group == 0) group = static_cast<std::uint8_t>(prefixes_.size());
    }
  }
  /// The percentiles in the order of `percentages`; empty without finite numbers. Only if done().
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> values;
    if (prefixes_.empty()) return values;
    for (const target& t : targets_) {
      const key sign = key{1} << (key_bits - 1);
      const int unknown = key_bits - digit_bits * known_;  // bits, which are 0 in the numbers
      const key zeros = static_cast<key>(t.prefix << unknown);
      const key bits = (zeros & sign) != 0 ? zeros ^ sign : static_cast<key>(~t.prefix << unknown);
      values.push_back(static_cast<double>(std::bit_cast<Value>(bits)));
    }
    return values;
  }

 private:
  using fields = value_fields<Value>;
  using key = std::make_unsigned_t<word_of<Value>>;
  static constexpr int digit_bits = 16;
  static constexpr std::size_t radix = std::size_t{1} << digit_bits;
  static constexpr int key_bits = std::numeric_limits<key>::digits;

  struct target {
    key prefix = 0;          ///< the digits of the key that are known
    std::uint64_t rank = 0;  ///< among the numbers with this prefix, from 0
  };

  /// The bits, all flipped if the number is negative, else with the sign bit flipped.
  static key key_of(Value number) {
    const key bits = std::bit_cast<key>(number + Value{0});  // -0 is +0
    const key negative = key{0} - (bits >> (key_bits - 1));
    return bits ^ (negative | key{1} << (key_bits - 1));
  }
  void set_ranks(std::span<std::uint64_t> counts) {
    for (std::size_t i = 0; i < radix; ++i) counts[i] += counts[radix + i];
    constexpr auto bits_of_infinity = static_cast<key>(infinity_word<Value>);
    constexpr auto infinity = static_cast<std::size_t>(bits_of_infinity >> (key_bits - digit_bits));
    const auto finite = counts.subspan(radix / 2 - infinity, 2 * infinity);
    std::fill(counts.begin(), counts.begin() + (finite.data() - counts.data()), 0);
    const std::uint64_t all = std::accumulate(finite.begin(), finite.end(), std::uint64_t{0});
    if (all == 0) prefixes_.clear();
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      targets_[i].rank = percentile_rank(percentages[i], all);
    }
  }

  int digits_;     ///< that differ among the numbers of the format, with their sign
  int known_ = 0;  ///< of these digits
  std::array<target, percentages.size()> targets_{};
  std::vector<key> prefixes_;         ///< of the targets, in order, each once
  std::vector<std::uint8_t> groups_;  ///< by first digit: 1 + the first prefix with this digit
};

}  // namespace samebits::backends
