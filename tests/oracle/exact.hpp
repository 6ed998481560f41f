// Exact values: what a code means, as integers and powers of two.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <compare>
#include <cstdint>

#include "oracle/format_table.hpp"

namespace samebits::oracle {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;

/// The number significand * 2^exponent, never negative.
struct dyadic {
  std::uint64_t significand = 0;
  int exponent = 0;
};

/// Orders two numbers by value, exactly.
std::strong_ordering compare(const dyadic& a, const dyadic& b);

/// The number halfway between a and b, exactly. Requires neighbours of one grid: exponents at most
/// one apart and significands below 2^60.
dyadic midpoint(const dyadic& a, const dyadic& b);

enum class value_kind : std::uint8_t { finite, infinite, nan };

/// An exact extended real number; a finite one is numerator / denominator * 2^exponent.
struct exact_value {
  value_kind kind = value_kind::finite;
  bool negative = false;    ///< also of a zero, an infinity and a NaN
  cpp_int numerator = 0;    ///< magnitude only, >= 0
  cpp_int denominator = 1;  ///< > 0
  int exponent = 0;
};

/// A finite value from a rational; `negative_zero` gives the sign where x is zero.
exact_value exact_from(const cpp_rational& x, bool negative_zero = false);

/// The signed value of a finite x; throws std::invalid_argument for an infinity or a NaN.
cpp_rational rational_of(const exact_value& x);

/// What `code` means. Bits that contract §1 says are ignored on read are ignored; a code that does
/// not fit the format's storage word throws std::invalid_argument. The NaN of fnuz and of e8m0 has
/// no sign and reads as not negative.
exact_value decode(const format& f, std::uint64_t code);

/// The magnitude of a finite code whose sign bit and unused bits are clear. The significand is the
/// integer q of contract §3: its last bit is the last bit of the grid.
dyadic decode_magnitude(const format& f, std::uint64_t magnitude_code);

/// The part of `code` that carries meaning: bits above code_bits and unused low bits cleared.
std::uint64_t meaningful_bits(const format& f, std::uint64_t code);

}  // namespace samebits::oracle
