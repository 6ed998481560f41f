// How the values of one tensor differ from those of another one, which is the reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/quantize/sqnr.hpp"
#include "samebits/core/format.hpp"
#include "samebits/reductions.hpp"

namespace fpinspect {

/// An element by its index in C order, and a figure or both values.
struct found_difference {
  std::uint64_t index = 0;
  double a = 0;
  double b = 0;
};

/// Counts and sums over pairs of elements (a, b). Numbers are compared: -0 equals 0, and NaN equals
/// NaN whatever its bits are.
struct difference_figures {
  std::uint64_t count = 0;
  std::uint64_t differ = 0;
  std::optional<std::uint64_t> bits_differ;  ///< codes that differ, if both have one format
  std::uint64_t new_nan = 0;                 ///< b is NaN, a is not
  std::uint64_t new_inf = 0;                 ///< b is an infinity, a is not the same one
  std::uint64_t lost_nan = 0;                ///< a is NaN, b is not
  std::uint64_t lost_inf = 0;                ///< a is an infinity, b is not the same one
  std::uint64_t nonzero = 0;                 ///< a is finite and not zero
  std::uint64_t underflow = 0;               ///< of these, b is zero
  std::uint64_t paired = 0;                  ///< both are finite: the errors are over these pairs
  double max_error = 0;                      ///< largest |a - b|
  std::optional<found_difference> largest;   ///< the first pair with this error, if it is not 0
  std::optional<found_difference> first;     ///< the first pair that differs
  double sum_error = 0;                      ///< sum of |a - b|
  double signal = 0;                         ///< sum of a^2
  double noise = 0;                          ///< sum of (a - b)^2

  /// The distance of a and b in steps between neighbouring values of `ulp_format`, to which both
  /// are rounded. steps[0] counts distance 0, steps[k] counts 2^(k-1) to 2^k - 1.
  samebits::format_id ulp_format = samebits::format_id::fp32;
  std::uint64_t max_ulp = 0;
  std::array<std::uint64_t, 65> steps{};

  [[nodiscard]] double mean_error() const;
  /// Whether NaN or infinities are not the same in both.
  [[nodiscard]] bool changes_specials() const {
    return new_nan + new_inf + lost_nan + lost_inf != 0;
  }
  [[nodiscard]] sqnr ratio() const;
};

/// The format in which a distance between elements of two formats is counted: the one with fewer
/// significand bits. e8m0 counts only beside itself.
samebits::format_id coarser(samebits::format_id a, samebits::format_id b);

/// The number of steps between two codes of a format. Neither may be NaN. Both zeros are one value.
std::uint64_t code_distance(samebits::format_id format, std::uint64_t a, std::uint64_t b);

/// Collects the figures. Elements come in C order, in chunks of any size.
class difference_meter {
 public:
  /// @param format  the format of the codes for add_steps()
  explicit difference_meter(samebits::format_id format) { figures_.ulp_format = format; }

  /// Adds the values of a chunk.
  ///
  /// @param codes_a,codes_b  both, rounded to the format with saturation; storage_bytes() each
  void add(std::span<const double> a, std::span<const double> b, const std::byte* codes_a,
           const std::byte* codes_b);
  /// Adds the number of codes that differ.
  void add_bits(std::uint64_t differ) {
    figures_.bits_differ = figures_.bits_differ.value_or(0) + differ;
  }

  [[nodiscard]] difference_figures result() const;

 private:
  void add_values(std::span<const double> a, std::span<const double> b);
  void add_specials(double a, double b);

  difference_figures figures_;
  samebits::tree_sum errors_;
  samebits::tree_sum signal_;
  samebits::tree_sum noise_;
  std::vector<double> inputs_;
};

/// Which of two tensors is closer to a third one, element by element.
struct closeness {
  std::uint64_t a = 0;      ///< a is closer
  std::uint64_t b = 0;      ///< b is closer
  std::uint64_t equal = 0;  ///< the same distance, or not finite

  void add(std::span<const double> original, std::span<const double> in_a,
           std::span<const double> in_b);
};

}  // namespace fpinspect
