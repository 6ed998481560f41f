// Counts of elements by power of two, amax of rows and columns, and the search for percentiles.
// Elements are float or double (Value).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <type_traits>
#include <vector>

#include "backends/reference/statistics/chunk_loops.hpp"

namespace samebits::backends {

/// Counts elements by power of two.
template <class Value>
class binade_counter {
 public:
  void add(std::span<const Value> elements);
  void combine(const binade_counter& other);
  /// The counts of finite non-zero elements.
  [[nodiscard]] std::map<int, binade_counts> result() const;

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
  void count_subnormals(std::span<const Value> elements);

  /// Two tables that take turns: neighbours in one binade then do not wait for each other's count.
  std::array<table, 2> counts_{};
  /// Subnormal elements by the position of their leading bit.
  std::array<binade_counts, fields::fraction_bits> subnormals_{};
};

/// Collects the amax of rows and columns. Rows are shared by the threads of a pass.
template <class Value>
class channel_amaxes {
 public:
  using words = std::vector<word_of<Value>>;  ///< magnitude words; -1: no finite element

  /// @param first  index of the first element in the matrix
  /// @param rows,columns  empty if they are not wanted
  static void add(std::uint64_t first, std::size_t row_size, std::span<const Value> elements,
                  words& rows, words& columns);
  /// The magnitudes of words.
  static std::vector<double> values(const words& of);
};

/// Finds percentiles of finite numbers by keys that have their order. Each pass over the numbers
/// counts them by the next 16 bits of those keys that may still be a percentile's.
template <class Value>
class percentile_search {
 public:
  /// @param format  holds all numbers
  explicit percentile_search(format_id format);

  [[nodiscard]] bool done() const { return prefixes_.empty() || known_ == digits_; }
  /// Number of counters of one thread in this pass.
  [[nodiscard]] std::size_t counters() const;
  /// Counts the numbers of a chunk. Any number of threads may call this in a pass.
  void count(std::span<const Value> elements, std::span<std::uint64_t> counters) const;
  /// Ends a pass.
  /// @param counters  the sums over all threads
  void next(std::span<std::uint64_t> counters);
  /// The percentiles in the order of `percentages`; empty without finite numbers. Only if done().
  [[nodiscard]] std::vector<double> values() const;

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

  static key key_of(Value number);
  void set_ranks(std::span<std::uint64_t> counts);

  int digits_;     ///< that differ among the numbers of the format, with their sign
  int known_ = 0;  ///< of these digits
  std::array<target, percentages.size()> targets_{};
  std::vector<key> prefixes_;         ///< of the targets, in order, each once
  std::vector<std::uint8_t> groups_;  ///< by first digit: 1 + the first prefix with this digit
};

}  // namespace samebits::backends
