// Compare: compares numbers of any two formats, selects the smaller or greater one, and gives the
// total order.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/bits/classify.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// Maps a code that is not a NaN to an integer in the order of the numbers, with -0 just below +0.
/// binary32 contains every number of every format that supports arithmetic.
SAMEBITS_INLINE constexpr std::int64_t order_key(const format_spec& f, std::uint64_t code) {
  const auto bits = decode<std::uint32_t>(f, static_cast<std::uint32_t>(code));
  const auto magnitude = static_cast<std::int64_t>(bits & 0x7FFFFFFFu);
  return (bits >> 31) != 0 ? -1 - magnitude : magnitude;
}

SAMEBITS_INLINE constexpr bool is_nan_code(const format_spec& f, std::uint64_t code) {
  return split(f, code).is_nan;
}

struct ordered {
  bool less, equal, greater;  ///< all false: unordered
  flags raised;
};

/// Compares numbers of two formats. NaN is unordered and -0 equals +0. Only a signaling NaN raises
/// invalid.
SAMEBITS_INLINE constexpr ordered compare_numbers(const format_spec& a_format, std::uint64_t a,
                                                  const format_spec& b_format, std::uint64_t b) {
  if (is_nan_code(a_format, a) || is_nan_code(b_format, b)) {
    const bool signaling = is_signaling(a_format, a) || is_signaling(b_format, b);
    return {false, false, false, flag_if(signaling, flags::invalid)};
  }
  const std::int64_t x = order_key(a_format, a);
  const std::int64_t y = order_key(b_format, b);
  const bool both_zero = (x == 0 || x == -1) && (y == 0 || y == -1);
  if (both_zero) return {false, true, false, flags::none};
  return {x<y, x == y, x> y, flags::none};
}

enum class extremum : std::uint8_t { minimum, maximum };
enum class nan_operands : std::uint8_t {
  win,   ///< minimum, maximum: a NaN operand gives NaN
  lose,  ///< minimumNumber, maximumNumber: the other operand; NaN if both are NaN
};

/// Returns the smaller or greater operand, converted to the destination format; -0 counts as below
/// +0.
SAMEBITS_INLINE constexpr outcome choose(const format_spec& a_format, std::uint64_t a,
                                         const format_spec& b_format, std::uint64_t b,
                                         const format_spec& to, const cast_rule& rule,
                                         std::uint64_t dither, extremum which, nan_operands nans) {
  const bool a_nan = is_nan_code(a_format, a);
  const bool b_nan = is_nan_code(b_format, b);
  if ((a_nan || b_nan) && (nans == nan_operands::win || (a_nan && b_nan))) {
    return nan_operand(to, is_signaling(a_format, a) || is_signaling(b_format, b));
  }
  bool first = b_nan;
  if (!a_nan && !b_nan) {
    const std::int64_t x = order_key(a_format, a);
    const std::int64_t y = order_key(b_format, b);
    first = which == extremum::minimum ? x <= y : x >= y;
  }
  const outcome result =
      result_of(to, rule, first ? unpack(a_format, a) : unpack(b_format, b), dither);
  const bool signaling = is_signaling(a_format, a) || is_signaling(b_format, b);
  return {result.code, result.raised | flag_if(signaling, flags::invalid)};
}

/// Maps a code to an integer in sign-magnitude order; NaNs are ordered by their payload.
SAMEBITS_INLINE constexpr std::int64_t total_key(const format_spec& f, std::uint64_t code) {
  const auto magnitude = static_cast<std::int64_t>(code & magnitude_mask(f));
  return (code & sign_mask(f)) != 0 ? -1 - magnitude : magnitude;
}

/// totalOrder(a, b) of IEEE 754: whether a is at or below b as a sign-magnitude integer.
SAMEBITS_INLINE constexpr bool total_order(const format_spec& f, std::uint64_t a, std::uint64_t b) {
  return total_key(f, a) <= total_key(f, b);
}

}  // namespace samebits::numerics
