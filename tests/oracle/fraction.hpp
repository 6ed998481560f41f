// Fractions: exact values in a unit, and their order.
#pragma once

#include <algorithm>

#include "oracle/exact.hpp"

namespace samebits::oracle {

inline bool is_nan(const exact_value& x) { return x.kind == value_kind::nan; }
inline bool is_infinite(const exact_value& x) { return x.kind == value_kind::infinite; }
inline bool is_zero(const exact_value& x) {
  return x.kind == value_kind::finite && x.numerator == 0;
}

/// numerator * 2^exponent over denominator as one fraction.
struct fraction {
  cpp_int numerator;
  cpp_int denominator;
};

/// |x| / 2^unit.
inline fraction in_units(const exact_value& x, int unit) {
  const int shift = x.exponent - unit;
  if (shift >= 0) return {cpp_int(x.numerator << shift), x.denominator};
  return {x.numerator, cpp_int(x.denominator << -shift)};
}

/// |a| <=> |b| for finite values.
inline int compare_magnitudes(const exact_value& a, const exact_value& b) {
  const int unit = std::min(a.exponent, b.exponent);
  const fraction x = in_units(a, unit);
  const fraction y = in_units(b, unit);
  return cpp_int(x.numerator * y.denominator).compare(cpp_int(y.numerator * x.denominator));
}

/// a <=> b for values that are not NaN; -0 equals +0.
inline int compare_numbers(const exact_value& a, const exact_value& b) {
  if (is_zero(a) && is_zero(b)) return 0;
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  int magnitudes = 0;
  if (is_infinite(a) || is_infinite(b)) {
    magnitudes = static_cast<int>(is_infinite(a)) - static_cast<int>(is_infinite(b));
  } else {
    magnitudes = compare_magnitudes(a, b);
  }
  return a.negative ? -magnitudes : magnitudes;
}

/// The largest k with 2^k <= |x|, for finite x that is not 0.
inline int exponent_of(const exact_value& x) {
  int k = static_cast<int>(msb(x.numerator)) - static_cast<int>(msb(x.denominator)) + x.exponent;
  const fraction f = in_units(x, k);
  if (f.numerator < f.denominator) --k;
  return k;
}

}  // namespace samebits::oracle
