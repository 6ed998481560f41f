// Dot products: exact dot products of binary32 numbers, and binary32 sums with scales.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/multiply.hpp"
#include "numerics/bits/classify.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/sums/exact_sum.hpp"
#include "samebits/core/accumulator.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// RN(a * b + c) of binary32 bits.
SAMEBITS_INLINE constexpr std::uint32_t binary32_fma(std::uint32_t a, std::uint32_t b,
                                                     std::uint32_t c) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(fused_multiply_add(f, a, f, b, f, c, f, cast_rule{}, 0).code);
}

/// Adds a partial sum p, scaled by a and b, to y. All are binary32 bits. `order` is the order of
/// the multiplications (samebits/core/accumulator.hpp).
SAMEBITS_HD constexpr std::uint32_t add_scaled(scale_order order, std::uint32_t y, std::uint32_t p,
                                               std::uint32_t a, std::uint32_t b) {
  namespace f = binary32;
  switch (order) {
    case scale_order::product_fused: return binary32_fma(p, f::multiply(a, b), y);
    case scale_order::product: return f::add(y, f::multiply(p, f::multiply(a, b)));
    case scale_order::a_then_b: return f::add(y, f::multiply(f::multiply(p, a), b));
    case scale_order::b_then_a: return f::add(y, f::multiply(f::multiply(p, b), a));
    case scale_order::a_then_b_fused: return binary32_fma(f::multiply(p, a), b, y);
    case scale_order::b_then_a_fused: return binary32_fma(f::multiply(p, b), a, y);
  }
  return 0;
}

/// The complete sum p, scaled by a and b.
SAMEBITS_HD constexpr std::uint32_t scaled(scale_order order, std::uint32_t p, std::uint32_t a,
                                           std::uint32_t b) {
  namespace f = binary32;
  switch (order) {
    case scale_order::product: return f::multiply(p, f::multiply(a, b));
    case scale_order::a_then_b: return f::multiply(f::multiply(p, a), b);
    case scale_order::b_then_a: return f::multiply(f::multiply(p, b), a);
    case scale_order::product_fused:
    case scale_order::a_then_b_fused:
    case scale_order::b_then_a_fused: return add_scaled(order, 0, p, a, b);
  }
  return 0;
}

/// An exact sum whose terms may include infinities and NaN.
template <class Sum>
struct extended_sum {
  Sum finite;
  bool nan = false;
  bool plus_inf = false;
  bool minus_inf = false;

  SAMEBITS_HD constexpr void add_infinity(bool negative) {
    (negative ? minus_inf : plus_inf) = true;
  }
  [[nodiscard]] SAMEBITS_HD constexpr bool is_nan() const { return nan || (plus_inf && minus_inf); }
  [[nodiscard]] SAMEBITS_HD constexpr bool is_inf() const {
    return !is_nan() && (plus_inf || minus_inf);
  }
  /// Rounds the sum once to nearest even into a format that has NaN and Inf. An exact zero gives
  /// +0.
  [[nodiscard]] SAMEBITS_HD constexpr std::uint64_t round(const format_spec& to) const {
    if (is_nan()) return canonical_nan(to);
    if (is_inf()) return inf_code(to) | (minus_inf ? sign_mask(to) : 0);
    return finite.round(to);
  }
};

using exact_dot = extended_sum<product_sum>;
using exact_scaled_dot = extended_sum<scaled_product_sum>;

/// Adds a * b exactly; a and b are binary32 bits.
SAMEBITS_HD constexpr void add_product(exact_dot& dot, std::uint32_t a, std::uint32_t b) {
  namespace f = binary32;
  const bool negative = ((a ^ b) & f::sign_bit) != 0;
  if (f::magnitude(a) >= f::inf || f::magnitude(b) >= f::inf) {
    if (f::is_nan(a) || f::is_nan(b) || f::is_zero(a) || f::is_zero(b)) {
      dot.nan = true;
    } else {
      dot.add_infinity(negative);
    }
    return;
  }
  if (f::is_zero(a) || f::is_zero(b)) return;
  const f::parts x = f::split(a);
  const f::parts y = f::split(b);
  dot.finite.add(negative, x.sig * y.sig, x.exponent + y.exponent);
}

/// Adds part * a * b exactly; a and b are binary32 scales.
SAMEBITS_HD constexpr void add_scaled_part(exact_scaled_dot& dot, const exact_dot& part,
                                           std::uint32_t a, std::uint32_t b) {
  namespace f = binary32;
  const bool infinite = f::is_inf(a) || f::is_inf(b);
  const bool zero = f::is_zero(a) || f::is_zero(b);
  const bool negative = (((a ^ b) & f::sign_bit) != 0);
  const product_sum part_magnitude = part.finite.magnitude();
  bool part_zero = !part.is_nan() && !part.is_inf();
  for (int i = 0; i < product_sum::limbs; ++i) {
    part_zero = part_zero && part_magnitude.limb(i) == 0;
  }
  if (part.is_nan() || f::is_nan(a) || f::is_nan(b) || (infinite && (zero || part_zero)) ||
      (part.is_inf() && zero)) {
    dot.nan = true;
  } else if (part.is_inf()) {
    dot.add_infinity(negative != part.minus_inf);
  } else if (infinite) {
    dot.add_infinity(negative != part.finite.is_negative());
  } else if (!zero) {
    const f::parts x = f::split(a);
    const f::parts y = f::split(b);
    dot.finite.add_product(part.finite, negative, x.sig * y.sig, x.exponent + y.exponent);
  }
}

/// Adds a binary32 number exactly.
SAMEBITS_HD constexpr void add_number(exact_scaled_dot& dot, std::uint32_t c) {
  namespace f = binary32;
  const bool negative = (c & f::sign_bit) != 0;
  if (f::is_nan(c)) {
    dot.nan = true;
  } else if (f::is_inf(c)) {
    dot.add_infinity(negative);
  } else if (!f::is_zero(c)) {
    const f::parts x = f::split(c);
    dot.finite.add(negative, x.sig, x.exponent);
  }
}

}  // namespace samebits::numerics
