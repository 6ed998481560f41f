// Where an exact value lies between two neighbouring codes of a target, overflow left aside.
#pragma once

#include <cstdint>

#include "oracle/exact.hpp"
#include "oracle/format_table.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::support {

/// The oracle's row of a target whose exponents go on beyond max finite; it has magnitudes only.
/// Up to max finite a magnitude has its usual code, and beyond it the codes go on counting.
oracle::format unbounded(const oracle::format& to);

/// The two magnitude codes around |x| on the unbounded grid; equal where |x| lies on it (and in
/// e8m0 below 2^-127, where there is no grid). v = part / whole is the distance from the lower one
/// in units of their distance.
struct grid_step {
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;
  oracle::cpp_int part = 0;
  oracle::cpp_int whole = 1;
};

/// x is finite.
grid_step locate(const oracle::format& to, const oracle::exact_value& x);

/// floor(v * 2^k).
std::uint64_t scaled_fraction(const grid_step& step, int k);

/// What samebits::converted must say beside the code: found from the code that is right.
struct expected_flags {
  bool inexact;
  bool overflow;
};

expected_flags expected_flags_of(const oracle::format& to, const oracle::exact_value& x,
                                 const cast_rule& rule, const random_bits& bits,
                                 std::uint64_t expected_code);

}  // namespace samebits::support
