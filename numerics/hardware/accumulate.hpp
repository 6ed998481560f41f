// Accumulate: computes in integers what one tensor core instruction returns.
//
// The parameters are a row of samebits/core/tensor_unit.hpp; docs/accumulators.md derives the
// algorithm.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/bits/number.hpp"
#include "numerics/bits/round.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace samebits::numerics {

/// The arithmetic of one instruction on operands of two formats.
struct accumulate_rule {
  format_spec a;
  format_spec b;
  format_spec result;   ///< fp32 or fp16; also the format of the input sum
  format_spec rounded;  ///< the result format, with only the mantissa bits that a step keeps
  int products;
  int group;
  int alignment_bits;
  samebits::rounding cut;       ///< rounding of terms; toward zero in every row
  samebits::rounding rounding;  ///< rounding of a step's sum into the result
  int floor;
  /// Exponent of subnormal operands. If it is below the format's own smallest exponent, subnormals
  /// are normalized down to it.
  int subnormal_exponent_a;
  int subnormal_exponent_b;
  sum_place place;
  product_order order;
};

/// Builds the rule of a row for operands of its kind.
/// @param result  fp32 or fp16
/// @param products  the row's number of products, or its narrow number
SAMEBITS_INLINE constexpr accumulate_rule accumulate_rule_of(const tensor_arithmetic& row,
                                                             format_id a, format_id b,
                                                             format_id result, int products) {
  const bool wide = result == format_id::fp32;
  accumulate_rule r{};
  r.a = spec_of(a);
  r.b = spec_of(b);
  r.result = spec_of(result);
  r.rounded = r.result;
  if (wide) {
    r.rounded.padding_bits = r.result.mantissa_bits - row.fraction_bits;
    r.rounded.mantissa_bits = row.fraction_bits;
  }
  r.products = products;
  const bool by_fp16 = row.path == tensor_path::by_fp16;
  const int maximum = by_fp16 ? products / 2 : products;
  r.group = row.group < maximum ? row.group : maximum;
  r.alignment_bits = row.alignment_bits;
  r.cut = rounding::toward_zero;
  r.rounding = wide ? rounding::toward_zero : rounding::nearest_even;
  r.floor = wide ? row.floor_fp32 : row.floor_fp16;
  const int min_fp16 = min_exponent(spec_of(format_id::fp16));
  r.subnormal_exponent_a = by_fp16 ? min_fp16 : min_exponent(r.a);
  r.subnormal_exponent_b = by_fp16 ? min_fp16 : min_exponent(r.b);
  r.place = by_fp16 ? sum_place::last_addition : sum_place::first_step;
  r.order = by_fp16 ? product_order::pairs_of_four : product_order::consecutive;
  return r;
}

/// An operand, or the input sum, as the tensor core uses it. A finite value is (-1)^negative *
/// significand * 2^(exponent - mantissa_bits); a subnormal is not normalized.
struct tensor_operand {
  std::uint32_t significand;
  std::int16_t exponent;
  bool negative;
  number_kind kind;
};

/// Splits a code. Subnormals get the format's smallest exponent. If `subnormal_exponent` is lower,
/// subnormals are normalized down to it.
SAMEBITS_INLINE constexpr tensor_operand tensor_operand_of(const format_spec& f,
                                                           int subnormal_exponent,
                                                           std::uint32_t code) {
  const auto compact = static_cast<std::uint32_t>(code >> f.padding_bits);
  const auto magnitude = compact & static_cast<std::uint32_t>(magnitude_mask(f));
  const auto fraction = magnitude & static_cast<std::uint32_t>(mantissa_mask(f));
  const int field = static_cast<int>(magnitude >> f.mantissa_bits);
  tensor_operand x{};
  x.negative = (compact & static_cast<std::uint32_t>(sign_mask(f))) != 0;
  if (magnitude > max_finite(f)) {
    x.kind = has_inf(f) && fraction == 0 ? number_kind::infinite : number_kind::nan;
    return x;
  }
  x.kind = magnitude == 0 ? number_kind::zero : number_kind::finite;
  x.significand = field == 0 ? fraction : fraction | (1u << f.mantissa_bits);
  int exponent = field == 0 ? min_exponent(f) : field - f.bias;
  if (x.kind == number_kind::finite) {
    while ((x.significand >> f.mantissa_bits) == 0 && exponent > subnormal_exponent) {
      x.significand <<= 1;
      --exponent;
    }
  }
  x.exponent = static_cast<std::int16_t>(exponent);
  return x;
}

/// NaN and infinities among the terms of a step.
struct special_terms {
  bool nan;
  bool plus_inf;
  bool minus_inf;
};

/// Records an infinite term.
SAMEBITS_INLINE constexpr void see_infinity(special_terms& s, bool negative) {
  s.minus_inf = s.minus_inf || negative;
  s.plus_inf = s.plus_inf || !negative;
}

/// Records a product if it is infinite or NaN; 0 * Inf is NaN.
SAMEBITS_INLINE constexpr void see_product(special_terms& s, const tensor_operand& a,
                                           const tensor_operand& b) {
  if (a.kind == number_kind::nan || b.kind == number_kind::nan) {
    s.nan = true;
  } else if (a.kind == number_kind::infinite || b.kind == number_kind::infinite) {
    if (a.kind == number_kind::zero || b.kind == number_kind::zero) s.nan = true;
    see_infinity(s, a.negative != b.negative);
  }
}

/// significand * 2^up, rounded by `cut` to an integer, with its sign.
SAMEBITS_INLINE constexpr std::int64_t cut_term(std::uint64_t significand, int up, bool negative,
                                                rounding cut) {
  if (significand == 0) return 0;
  std::uint64_t kept = 0;
  if (up >= 0) {
    kept = significand << up;
  } else if (cut == rounding::toward_zero) {
    kept = up <= -64 ? 0 : significand >> -up;
  } else {
    const auto down = static_cast<std::uint64_t>(-up);
    kept = round_shift<std::uint64_t>(cut, significand, down, negative, 0).q;
  }
  const auto magnitude = static_cast<std::int64_t>(kept);
  return negative ? -magnitude : magnitude;
}

/// The index of the product at a position of the tensor core's order.
SAMEBITS_INLINE constexpr int product_at(const accumulate_rule& r, int position) {
  if (r.order == product_order::consecutive) return position;
  const int half = r.products / 2;
  const int within = position < half ? position : position - half;
  return within / 2 * 4 + within % 2 + (position < half ? 0 : 2);
}

/// Rounds the sum of a step into the result's format. In either rounding mode an overflow gives
/// Inf, and every zero result is +0.
SAMEBITS_INLINE constexpr std::uint32_t round_sum(const accumulate_rule& r, std::int64_t sum,
                                                  int exponent) {
  if (sum == 0) return 0;
  const bool negative = sum < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
  const auto x = encode_scaled(r.rounded, cast_rule{r.rounding}, negative, magnitude, exponent, 0);
  const auto sign = negative ? static_cast<std::uint32_t>(sign_mask(r.result)) : 0u;
  if (x.overflow) return static_cast<std::uint32_t>(inf_code(r.result)) | sign;
  const auto code = static_cast<std::uint32_t>(x.code);
  return code == sign ? 0u : code;
}

/// One step: adds the input sum and the products at positions [from, from + r.group).
/// @param a,b  operands by product index
/// @param count  products with index >= count are absent
/// @param c  the input sum, a code of the result's format
SAMEBITS_HD constexpr std::uint32_t accumulate_step(const accumulate_rule& r,
                                                    const tensor_operand* a,
                                                    const tensor_operand* b, int count, int from,
                                                    std::uint32_t c) {
  const tensor_operand start = tensor_operand_of(r.result, min_exponent(r.result), c);
  special_terms special = {start.kind == number_kind::nan, false, false};
  if (start.kind == number_kind::infinite) see_infinity(special, start.negative);
  int top = r.floor;
  if (start.kind == number_kind::finite && start.exponent > top) top = start.exponent;
  for (int i = 0; i < r.group; ++i) {
    const int k = product_at(r, from + i);
    if (k >= count) continue;
    see_product(special, a[k], b[k]);
    const bool counts = a[k].kind == number_kind::finite && b[k].kind == number_kind::finite;
    const int exponent = a[k].exponent + b[k].exponent;
    if (counts && exponent > top) top = exponent;
  }
  if (special.nan || (special.plus_inf && special.minus_inf)) {
    return static_cast<std::uint32_t>(canonical_nan(r.result));
  }
  if (special.plus_inf || special.minus_inf) {
    const auto sign = special.minus_inf ? static_cast<std::uint32_t>(sign_mask(r.result)) : 0u;
    return static_cast<std::uint32_t>(inf_code(r.result)) | sign;
  }
  // All terms are integers in units of 2^(top - alignment_bits).
  const int up = r.alignment_bits - top;
  const int up_product = up - r.a.mantissa_bits - r.b.mantissa_bits;
  std::int64_t sum = cut_term(start.significand, up - r.result.mantissa_bits + start.exponent,
                              start.negative, r.cut);
  for (int i = 0; i < r.group; ++i) {
    const int k = product_at(r, from + i);
    if (k >= count) continue;
    const std::uint64_t product = std::uint64_t{a[k].significand} * b[k].significand;
    sum += cut_term(product, up_product + a[k].exponent + b[k].exponent,
                    a[k].negative != b[k].negative, r.cut);
  }
  return round_sum(r, sum, -up);
}

/// One IEEE addition, rounded to nearest even, in the result's format.
SAMEBITS_INLINE constexpr std::uint32_t add_nearest(const format_spec& f, std::uint32_t x,
                                                    std::uint32_t y) {
  if (f.storage_bits == 32) return binary32::add(x, y);
  return static_cast<std::uint32_t>(add(f, x, f, y, f, cast_rule{}, 0).code);
}

/// One instruction: the input sum plus `count` products.
/// @param count  at most r.products; the other products are absent
/// @param c  the input sum, a code of the result's format
SAMEBITS_HD constexpr std::uint32_t accumulate(const accumulate_rule& r, const tensor_operand* a,
                                               const tensor_operand* b, int count,
                                               std::uint32_t c) {
  const bool late = r.place == sum_place::last_addition;
  std::uint32_t sum = late ? 0u : c;
  for (int from = 0; from < r.products; from += r.group) {
    sum = accumulate_step(r, a, b, count, from, sum);
  }
  return late ? add_nearest(r.result, c, sum) : sum;
}

}  // namespace samebits::numerics
