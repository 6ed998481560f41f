// Conversion of one value: exact input, one rounding on the target's grid, then the policies.
#pragma once

#include <cstdint>

#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// Where a magnitude lies between the grid points q * 2^spacing and (q + 1) * 2^spacing, as if the grid
/// went on beyond max finite. The distances to them share one unit, which they add up to in `whole`.
struct grid_place {
  std::uint64_t q = 0;
  int spacing = 0;
  cpp_int to_lower;
  cpp_int to_upper;
  cpp_int whole;
};

/// The place of |x|, for finite x that is not 0.
grid_place place_on_grid(const format& to, const exact_value& x);

/// A code, and of a finite x whether its value is another number, and whether x, rounded as if the
/// grid went on, exceeds max finite.
struct rounded_code {
  std::uint64_t code;
  bool inexact = false;
  bool overflow = false;
};

/// The code in `to` of the exact value x. `bits` is read by rounding::stochastic alone and must
/// then have count in 1..32 and value below 2^count. Throws std::invalid_argument on a bad
/// argument.
rounded_code round_with_flags(const format& to, const exact_value& x, const cast_rule& rule,
                              const random_bits& bits = {});

/// The code alone.
std::uint64_t round_exact(const format& to, const exact_value& x, const cast_rule& rule,
                          const random_bits& bits = {});

/// The code in `to` of the value of `code` in `from`: decode, then round_exact.
std::uint64_t convert(const format& from, const format& to, std::uint64_t code,
                      const cast_rule& rule, const random_bits& bits = {});

}  // namespace samebits::oracle
