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

#include "samebits/core/table.hpp"

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
template <>
inline constexpr auto table_of<rounding> = enum_table<rounding::stochastic>(
    {"nearest_even", "nearest_away", "toward_zero", "upward", "downward", "to_odd", "stochastic"});

/// Overflow policy; see the second table above.
enum class overflow : std::uint8_t { ieee, saturate, saturate_finite };
template <>
inline constexpr auto table_of<overflow> =
    enum_table<overflow::saturate_finite>({"ieee", "saturate", "saturate_finite"});

/// NaN policy; see the third table above.
enum class nan_policy : std::uint8_t { canonical, preserve_sign };
template <>
inline constexpr auto table_of<nan_policy> =
    enum_table<nan_policy::preserve_sign>({"canonical", "preserve_sign"});

/// Rules for rounding one value into a format.
struct cast_rule {
  samebits::rounding rounding = samebits::rounding::nearest_even;
  samebits::overflow overflow = samebits::overflow::ieee;
  nan_policy nan = nan_policy::canonical;

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

}  // namespace samebits
