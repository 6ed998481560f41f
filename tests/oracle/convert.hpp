// Conversion of one value: exact input, one rounding on the target's grid, then the policies.
#pragma once

#include <cstdint>

#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// Where a magnitude lies between the grid points q * 2^spacing and (q + 1) * 2^spacing: at
/// q + rest / whole of them.
struct grid_place {
  cpp_int q;
  cpp_int rest;
  cpp_int whole = 1;
  int to_half = -1;  ///< rest / whole <=> 1/2
  bool odd = false;  ///< q
  int spacing = 0;
};

/// The place of |x|, for finite x, among the multiples of 2^spacing.
grid_place place_among_multiples(int spacing, const exact_value& x);

/// The place of |x|, for finite x that is not 0, on the grid of a format as if that went on beyond max
/// finite.
grid_place place_on_grid(const format& to, const exact_value& x);

/// Whether contract §3 goes away from zero, to q + 1.
bool goes_away(const grid_place& p, rounding mode, bool negative, const random_bits& bits);

/// A code, and of a finite x whether its value is another number, and whether x, rounded as if the
/// grid went on, exceeds max finite.
struct rounded_code {
  std::uint64_t code;
  bool inexact = false;
  bool overflow = false;
};

/// The code in `to` of a value in a place of the grid of `to`. `negative` is that of the value; the code
/// has it where the format has a sign.
rounded_code round_on_grid(const format& to, const grid_place& p, bool negative,
                           const cast_rule& rule, const random_bits& bits);

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
