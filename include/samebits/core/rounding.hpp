// Rounding, overflow and NaN policies: the enums, their names, and tables of their meaning.
//
// The exact value x is rounded once, on the grid of the target (contract §3). q is the significand
// integer of the grid point toward zero. v in [0,1) is the distance from this grid point in units
// of the spacing.
//
//   rounding        away from zero iff                     at overflow under overflow::ieee
//   nearest_even    v > 1/2, or v = 1/2 and q odd          Inf, else NaN
//   nearest_away    v >= 1/2                               Inf, else NaN
//   toward_zero     never                                  max finite
//   upward          v > 0 and x > 0                        x > 0: Inf, else NaN; x < 0: max finite
//   downward        v > 0 and x < 0                        x < 0: Inf, else NaN; x > 0: max finite
//   to_odd          v > 0 and q even                       max finite
//   stochastic      floor(v * 2^K) + R >= 2^K              Inf, else NaN
//
//   overflow          finite beyond max      exactly infinite
//   ieee              see the table above    Inf where the format has it, else NaN
//   saturate          max finite             max finite           (CUDA satfinite, OCP saturating)
//   saturate_finite   max finite             Inf, else NaN        (ml_dtypes kSaturate)
//   A format with neither Inf nor NaN saturates under every policy.
//
//   nan_policy        result of a NaN
//   canonical         the positive canonical NaN of contract §2
//   preserve_sign     the canonical NaN with the input's sign; no effect in fnuz, e8m0, FP4, FP6
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace samebits {

/// Rounding mode; see the first table above.
enum class rounding : std::uint8_t {
  nearest_even,
  nearest_away,
  toward_zero,
  upward,
  downward,
  to_odd,
  stochastic,
};

/// Overflow policy; see the second table above.
enum class overflow : std::uint8_t { ieee, saturate, saturate_finite };

/// NaN policy; see the third table above.
enum class nan_policy : std::uint8_t { canonical, preserve_sign };

inline constexpr int rounding_count = 7;
inline constexpr int overflow_count = 3;
inline constexpr int nan_policy_count = 2;

/// Rules for rounding one value into a format.
struct cast_rule {
  rounding round = rounding::nearest_even;
  overflow on_overflow = overflow::ieee;
  nan_policy on_nan = nan_policy::canonical;

  friend constexpr bool operator==(const cast_rule&, const cast_rule&) = default;
};

/// Random bits for one stochastically rounded value: a K-bit integer in [0, 2^count).
struct random_bits {
  std::uint32_t value = 0;
  int count = 32;  ///< K, in 1..32
};

/// Source of the random bits of an array (contract §3). Element (row, column) uses R of
/// Philox4x32-10 at index = offset + row * pitch + column (mod 2^64), keyed by seed.
struct random_stream {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t offset = 0;
  /// Elements from one row to the next. Absent: the column count. A column shard passes the whole
  /// tensor's column count.
  std::optional<std::uint64_t> pitch = std::nullopt;
  int bits = 32;  ///< K, in 1..32
};

constexpr std::string_view name(rounding r) {
  switch (r) {
    case rounding::nearest_even: return "nearest_even";
    case rounding::nearest_away: return "nearest_away";
    case rounding::toward_zero: return "toward_zero";
    case rounding::upward: return "upward";
    case rounding::downward: return "downward";
    case rounding::to_odd: return "to_odd";
    case rounding::stochastic: return "stochastic";
  }
  return "?";
}

/// Returns the i-th rounding mode, 0 <= i < rounding_count.
constexpr rounding rounding_at(int i) { return static_cast<rounding>(i); }

/// Returns the rounding mode with this name, or nothing.
constexpr std::optional<rounding> find_rounding(std::string_view text) {
  for (int i = 0; i < rounding_count; ++i) {
    if (name(rounding_at(i)) == text) return rounding_at(i);
  }
  return std::nullopt;
}

constexpr std::string_view name(overflow o) {
  switch (o) {
    case overflow::ieee: return "ieee";
    case overflow::saturate: return "saturate";
    case overflow::saturate_finite: return "saturate_finite";
  }
  return "?";
}

constexpr std::string_view name(nan_policy n) {
  switch (n) {
    case nan_policy::canonical: return "canonical";
    case nan_policy::preserve_sign: return "preserve_sign";
  }
  return "?";
}

}  // namespace samebits
