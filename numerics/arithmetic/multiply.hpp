// Multiply: products, and fused multiply-add, rounded once.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/bits/number.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics {

/// Number of fraction bits in a product of two significands.
inline constexpr int product_fraction = 2 * (number_bits - 1);

/// Whether x * y is 0 * Inf.
SAMEBITS_INLINE constexpr bool is_invalid_product(const number& x, const number& y) {
  return (x.kind == number_kind::zero && y.kind == number_kind::infinite) ||
         (x.kind == number_kind::infinite && y.kind == number_kind::zero);
}

/// a * b.
SAMEBITS_INLINE constexpr outcome multiply(const format_spec& a_format, std::uint64_t a,
                                           const format_spec& b_format, std::uint64_t b,
                                           const format_spec& to, const cast_rule& rule,
                                           std::uint64_t dither) {
  const number x = unpack(a_format, a);
  const number y = unpack(b_format, b);
  const bool negative = x.negative != y.negative;
  if (x.kind == number_kind::finite && y.kind == number_kind::finite) [[likely]] {
    return round_result_of(2 * number_bits, to, rule, negative, x.sig * y.sig,
                           x.exponent + y.exponent - product_fraction, dither);
  }
  if (x.kind == number_kind::nan || y.kind == number_kind::nan) {
    return nan_operand(to, is_signaling(a_format, a) || is_signaling(b_format, b));
  }
  if (is_invalid_product(x, y)) return nan_result(to, flags::invalid);
  if (x.kind == number_kind::zero || y.kind == number_kind::zero) return zero_result(to, negative);
  return infinite_result(to, rule, negative);
}

/// a * b + c if an operand is zero, infinite or NaN.
SAMEBITS_INLINE constexpr outcome special_fused(const format_spec& to, const cast_rule& rule,
                                                const number& x, const number& y, const number& z,
                                                bool signaling, std::uint64_t dither) {
  if (x.kind == number_kind::nan || y.kind == number_kind::nan) return nan_operand(to, signaling);
  if (is_invalid_product(x, y)) return nan_result(to, flags::invalid);  // even if c is NaN
  number product{0, 0, x.negative != y.negative, number_kind::finite};
  if (x.kind == number_kind::zero || y.kind == number_kind::zero) {
    product.kind = number_kind::zero;
  } else if (x.kind == number_kind::infinite || y.kind == number_kind::infinite) {
    product.kind = number_kind::infinite;
  } else if (z.kind == number_kind::zero) {
    return round_result_of(2 * number_bits, to, rule, product.negative, x.sig * y.sig,
                           x.exponent + y.exponent - product_fraction, dither);
  }
  // Here a finite non-zero product is only added to an infinite or NaN c, so its digits do not
  // matter.
  return special_sum(to, rule, product, z, signaling, dither);
}

/// a * b + c.
SAMEBITS_INLINE constexpr outcome fused_multiply_add(const format_spec& a_format, std::uint64_t a,
                                                     const format_spec& b_format, std::uint64_t b,
                                                     const format_spec& c_format, std::uint64_t c,
                                                     const format_spec& to, const cast_rule& rule,
                                                     std::uint64_t dither) {
  const number x = unpack(a_format, a);
  const number y = unpack(b_format, b);
  const number z = unpack(c_format, c);
  if (x.kind == number_kind::finite && y.kind == number_kind::finite &&
      z.kind == number_kind::finite) [[likely]] {
    constexpr int up = 61 - 2 * number_bits;
    const term product{(x.sig * y.sig) << up, x.exponent + y.exponent - product_fraction - up,
                       x.negative != y.negative};
    return sum_of_terms(to, rule, product, term_of(z), dither);
  }
  const bool signaling =
      is_signaling(a_format, a) || is_signaling(b_format, b) || is_signaling(c_format, c);
  return special_fused(to, rule, x, y, z, signaling, dither);
}

}  // namespace samebits::numerics
