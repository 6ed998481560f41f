// Square root: rounded once, by an estimate from a table and exact integer remainders.
#pragma once

#include <cstdint>

#include "numerics/config.hpp"
#include "numerics/divide.hpp"
#include "numerics/number.hpp"
#include "samebits/flags.hpp"
#include "samebits/format.hpp"
#include "samebits/rounding.hpp"

namespace samebits::numerics {

/// floor(sqrt(n)) bit by bit, and whether n is not its square: any n * 4^zeros whose root has at
/// most 60 bits, n < 2^62.
struct integer_root {
  std::uint64_t root;
  bool inexact;
};

SAMEBITS_INLINE constexpr integer_root root_by_digits(std::uint64_t n, int zeros) {
  std::uint64_t root = 0;
  std::uint64_t rest = 0;  // of the digits seen so far: at most 2 * root
  for (int pair = 30 + zeros; pair >= 0; --pair) {
    const std::uint64_t digits = pair >= zeros ? (n >> (2 * (pair - zeros))) & 3 : 0;
    rest = (rest << 2) | digits;
    const std::uint64_t trial = (root << 2) | 1;
    const bool one = rest >= trial;
    if (one) rest -= trial;
    root = (root << 1) | (one ? 1 : 0);
  }
  return {root, rest != 0};
}

/// 1 / sqrt(x) at x = 1, 17/16, ... 4 in units of 2^-16.
struct reciprocal_roots {
  std::uint32_t at[49];
};

SAMEBITS_INLINE constexpr reciprocal_roots make_reciprocal_roots() {
  reciprocal_roots table{};
  for (std::uint64_t i = 0; i <= 48; ++i) {
    // 2^16 / sqrt((16 + i) / 16) = sqrt(2^36 / (16 + i))
    table.at[i] =
        static_cast<std::uint32_t>(root_by_digits((std::uint64_t{1} << 36) / (16 + i), 0).root);
  }
  return table;
}

/// floor(sqrt(n)) for 2^50 <= n < 2^52.
///
///   r   1 / sqrt by the chord between two points of the table: 11 bits
///   s   n * r: the root to 11 bits, then two steps s += (n - s * s) * r / 2, which double them
///   less
///       one, and at last the neighbour that is right
SAMEBITS_INLINE constexpr std::uint64_t root_of(std::uint64_t n) {
  constexpr reciprocal_roots table = make_reciprocal_roots();
  const std::uint64_t i = (n >> 46) - 16;
  const std::uint64_t fraction = (n >> 30) & 0xFFFF;
  const std::uint64_t left = table.at[i];
  const std::uint64_t r =
      left - (((left - table.at[i + 1]) * fraction) >> 16);  // 2^15 <= r <= 2^16
  std::uint64_t s = ((n >> 20) * r) >> 21;  // 2^32 * 2^16 * 2^-22: the root has 26 bits
  const auto refine = [&] {
    const auto rest = static_cast<std::int64_t>(n - s * s);
    s = static_cast<std::uint64_t>(static_cast<std::int64_t>(s) +
                                   ((rest >> 4) * static_cast<std::int64_t>(r) >> 38));
  };
  refine();
  refine();
  if (s * s > n) --s;
  if ((s + 1) * (s + 1) <= n) ++s;
  return s;
}

/// The root of a positive number, to the bits that rounding into `to` needs.
SAMEBITS_INLINE constexpr magnitude root_of_number(const number& x, rounding mode) {
  // |x| = n * 2^exponent with an even exponent and 2^24 <= n < 2^26.
  const int odd = x.exponent & 1;
  const std::uint64_t n = x.sig << (1 + odd);
  const int exponent = x.exponent - number_bits - odd;
  if (mode == rounding::stochastic) {
    constexpr int zeros = 46;
    const integer_root r = root_by_digits(n, zeros);
    return {r.root | (r.inexact ? 1 : 0), exponent / 2 - zeros};
  }
  constexpr int zeros = 13;
  const std::uint64_t padded = n << (2 * zeros);
  const std::uint64_t s = root_of(padded);
  return {s | (s * s != padded ? 1 : 0), exponent / 2 - zeros};
}

/// sqrt(a).
SAMEBITS_INLINE constexpr outcome square_root(const format_spec& a_format, std::uint64_t a,
                                              const format_spec& to, const cast_rule& rule,
                                              std::uint64_t dither) {
  const number x = unpack(a_format, a);
  if (x.kind == number_kind::nan) return nan_operand(to, is_signaling(a_format, a));
  if (x.kind == number_kind::zero) return zero_result(to, x.negative);  // sqrt(-0) = -0
  if (x.negative) return nan_result(to, flags::invalid);
  if (x.kind == number_kind::infinite) return infinite_result(to, rule, false);
  const magnitude s = root_of_number(x, rule.round);
  return round_result(to, rule, false, s.sig, s.exponent, dither);
}

}  // namespace samebits::numerics
