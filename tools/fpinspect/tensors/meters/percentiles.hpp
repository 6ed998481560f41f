// Exact percentiles of any number of values: of few by selection, of many in a few passes over them
// and 4 MiB of memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "samebits/core/format.hpp"

namespace fpinspect {

/// The percentages of the percentiles.
inline constexpr std::array<int, 7> percentages = {1, 5, 25, 50, 75, 95, 99};

/// Finds the percentiles of finite numbers. The percentile of p % is the smallest of the numbers
/// that at least p % of them do not exceed (NumPy's method `inverted_cdf`), so it is one of them.
/// A zero is +0.
///
/// Up to 65,536 numbers are kept in memory. Of more, each pass counts the numbers by the next 16 bits
/// of a key that has their order. Call add() with all numbers, in any order, then next_pass(), until
/// done().
class percentile_finder {
 public:
  /// @param format  holds all numbers; its width decides the number of passes, 1 to 4
  /// @param count  the number of numbers
  percentile_finder(samebits::format_id format, std::uint64_t count);

  [[nodiscard]] bool done() const { return bits_left_ <= 0; }
  /// NaN and infinities are skipped.
  void add(std::span<const double> numbers);
  void next_pass();

  /// The percentiles, in the order of `percentages`; empty without finite numbers. Only if done().
  [[nodiscard]] std::vector<double> values() const;

 private:
  /// The numbers whose keys begin with `prefix`.
  struct group {
    std::uint64_t prefix = 0;
    std::vector<std::uint64_t> counts;  ///< by the next 16 bits
  };
  struct target {
    std::uint64_t prefix = 0;  ///< the bits of the key that are known
    std::uint64_t rank = 0;    ///< among the numbers with this prefix, from 0
  };

  [[nodiscard]] std::vector<double> selected() const;
  void set_ranks();
  void regroup();

  bool few_;
  std::vector<double> kept_;  ///< all finite numbers, if they are few
  int bits_left_;
  int bits_known_ = 0;
  std::vector<group> groups_;
  std::vector<char> wanted_;  ///< by the first 16 bits of a key: whether a group begins with them
  std::array<target, percentages.size()> targets_{};
};

}  // namespace fpinspect
