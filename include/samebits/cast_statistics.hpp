// Statistics of the elements of a tensor, and of what casts to other formats would do to them:
// counts, extremes, sums, percentiles, losses. Nothing is written.
//
//   samebits::statistics_pass pass({.casts = {samebits::format_id::e4m3}, .sums = true}, {rows, cols});
//   do {
//     for (...) pass.add(samebits::view_of(part));  // all elements in C order, in any parts
//   } while (pass.again());
//   const samebits::cast_statistics s = pass.result();
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "samebits/backend.hpp"
#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"

namespace samebits {

/// What is computed of the elements besides counts and extremes.
struct statistics_request {
  format_id format = format_id::fp32;  ///< of the elements
  /// Formats whose effect is measured. Any but fp64, which loses nothing, and e8m0, which has
  /// neither sign nor zero.
  std::vector<format_id> casts = {};
  int scale_log2 = 0;        ///< in -2000..2000: casts are of the elements times 2^scale_log2
  bool binades = false;      ///< counts by power of two
  bool sums = false;         ///< sum, squares, mean, rms, l2_norm
  bool l1_norm = false;      ///< sum of magnitudes
  bool std = false;          ///< standard deviation; takes a second pass
  bool row_amax = false;     ///< amax of each row
  bool column_amax = false;  ///< amax of each column
  bool percentiles = false;  ///< takes up to 2 passes, of fp64 4
};

/// Magnitudes x with 2^e <= x < 2^(e + 1). The three counts decide exactly whether x * 2^k becomes
/// 0 or infinite in fp16, for every k.
struct binade_counts {
  std::uint64_t all = 0;
  std::uint64_t powers = 0;  ///< x == 2^e: a scaled 2^-25 is a tie and becomes 0
  std::uint64_t top = 0;     ///< x >= 2^e * (2 - 2^-11): a scaled 65520 becomes infinite

  constexpr void add(const binade_counts& more) {
    all += more.all;
    powers += more.powers;
    top += more.top;
  }
  friend constexpr bool operator==(const binade_counts&, const binade_counts&) = default;
};

/// What a cast to one format does, rounding to nearest even. Counts are of elements.
struct cast_effect {
  format_id format = format_id::fp32;
  std::uint64_t underflow = 0;  ///< finite and non-zero, becomes a zero
  std::uint64_t subnormal = 0;  ///< finite and non-zero, becomes a subnormal
  std::uint64_t overflow = 0;   ///< finite, rounds to a value beyond max finite
  std::uint64_t to_inf = 0;     ///< finite, becomes an infinity
  std::uint64_t to_nan = 0;     ///< a number or an infinity, becomes NaN
  std::uint64_t to_max = 0;     ///< NaN or an infinity, becomes finite
  std::uint64_t changed = 0;    ///< becomes a different number; NaN to NaN is no change
  double signal = 0;  ///< sum of RN64(x * x); pairs that are not finite on both sides add +0
  double noise = 0;   ///< sum of RN64(d * d), d = RN64(x - cast x), over the same pairs
  /// signal and noise of a cast with overflow::saturate.
  double saturated_signal = 0;
  double saturated_noise = 0;

  /// Returns the number of elements that lose their value.
  [[nodiscard]] std::uint64_t destroyed() const { return underflow + to_inf + to_nan + to_max; }
};

/// The percentages of cast_statistics::percentiles.
inline constexpr std::array<int, 7> percentages = {1, 5, 25, 50, 75, 95, 99};

/// Statistics of the elements of a tensor. Members that the request does not name are 0 or empty.
///
/// Sums are in binary64, over the tree of tree_sum; elements that are not finite add +0. A zero
/// among extremes and percentiles is +0.
struct cast_statistics {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;  ///< of either sign
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::optional<std::uint64_t> first_nonfinite = {};  ///< index of the first NaN or infinity
  // Of the finite elements; nothing without one.
  std::optional<double> min = {};
  std::optional<double> max = {};
  std::optional<double> amax = {};
  std::optional<double> min_nonzero = {};     ///< smallest magnitude above 0
  std::map<int, binade_counts> binades = {};  ///< finite non-zero elements by floor(log2(|x|))
  double sum = 0;                             ///< of x
  double squares = 0;                         ///< of RN64(x * x)
  // If amax is outside [2^-500, 2^500), sums for the members up to `std` are of x * 2^k, with the k
  // that brings amax into [1, 2), and the result is multiplied by 2^-k. That takes another pass.
  std::optional<double> mean = {};  ///< sum / finite elements
  std::optional<double> rms = {};   ///< sqrt(squares / finite elements)
  double l1_norm = 0;               ///< sum of |x|
  double l2_norm = 0;               ///< sqrt(squares)
  std::optional<double> std = {};   ///< sqrt(sum of (x - mean)^2 / finite elements)
  /// By `percentages`: the smallest finite element that at least p % of them do not exceed (NumPy's
  /// method inverted_cdf). Empty without finite elements.
  std::vector<double> percentiles = {};
  std::vector<double> row_amax = {};     ///< -1: no finite element
  std::vector<double> column_amax = {};  ///< -1: no finite element
  std::vector<cast_effect> casts = {};   ///< in the order of the request

  [[nodiscard]] std::uint64_t finite() const { return count - nan - inf; }
  [[nodiscard]] std::uint64_t nonzero() const { return finite() - zeros; }
};

namespace backends {
class element_passes;
}

/// Collects statistics of a matrix that is read once or several times, in parts.
///
/// The result depends on the elements alone: not on how they are cut, nor on backend and threads.
///
/// @throws environment_error from the constructor, add and again, if the process or thread does not
///   compute in IEEE 754 steps (samebits/self_test.hpp).
class statistics_pass {
 public:
  /// Begins the first pass.
  ///
  /// @param request  what is computed
  /// @param shape  rows and columns of the whole matrix
  /// @param where  a backend of host memory, and threads
  /// @throws invalid_argument if:
  ///   - a format of `casts` is fp64 or e8m0, or scale_log2 is out of range;
  ///   - a size is negative, or the shape has 2^63 or more elements;
  ///   - the backend's name is unknown, or it works on device memory.
  /// @throws unsupported if this machine lacks the backend.
  statistics_pass(const statistics_request& request, const matrix_shape& shape,
                  const executor& where = {});
  ~statistics_pass();
  statistics_pass(statistics_pass&&) noexcept;
  statistics_pass& operator=(statistics_pass&&) noexcept;

  /// Adds the next elements, in the order (row, column).
  ///
  /// @param elements  any shape and strides, in the format of the request, host memory
  /// @throws invalid_argument for a view that is not well-formed, of another format or in device
  ///   memory, or if it has more elements than are missing.
  /// @note Allocates some 100 KiB for each thread, up to 4 MiB for percentiles, and the amaxes of
  ///   columns. After any other exception the pass cannot go on.
  void add(const const_matrix_view& elements);

  /// Ends a pass. Returns whether another pass is needed: then all elements are added once more.
  ///
  /// @throws invalid_argument if elements are missing.
  bool again();

  /// Returns the statistics.
  ///
  /// @throws invalid_argument unless again() has returned false.
  [[nodiscard]] cast_statistics result() const;

 private:
  std::unique_ptr<backends::element_passes> passes_;
};

/// Returns the statistics of a matrix in memory. request.format does not count.
///
/// @throws as statistics_pass does.
///
///   const auto s = samebits::statistics_of(samebits::view_of(gradient),
///                                          {.casts = {samebits::format_id::fp16}, .std = true});
cast_statistics statistics_of(const const_matrix_view& elements, statistics_request request,
                              const executor& where = {});

}  // namespace samebits
