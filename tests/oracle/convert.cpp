// Rounding by comparing the exact distances to the two neighbouring grid points (contract §3).
#include "oracle/convert.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "oracle/fraction.hpp"
#include "oracle/specials.hpp"

namespace samebits::oracle {
namespace {

/// The magnitude code of a grid point that is not beyond max finite. In e8m0, which has no zero,
/// both 0 and its smallest value are code 00: so |x| <= 2^-127 gives 00 in every mode, as contract
/// §4 says.
std::uint64_t encode_magnitude(const format& to, dyadic point) {
  const std::uint64_t one = std::uint64_t{1} << to.mantissa_bits;
  if (point.significand == 2 * one) {
    point.significand = one;
    ++point.exponent;
  }
  std::uint64_t fields = point.significand;  // exponent field 0: zero and the subnormals
  if (point.significand >= one) {
    const int exponent_field = point.exponent + to.mantissa_bits + to.bias;
    fields = static_cast<std::uint64_t>(exponent_field) * one + (point.significand - one);
  }
  return fields * (std::uint64_t{1} << to.unused_low_bits);
}

void require_valid(const random_bits& bits) {
  if (bits.count < 1 || bits.count > 32) {
    throw std::invalid_argument("oracle: bits.count is " + std::to_string(bits.count) +
                                ", expected 1..32");
  }
  if (bits.value >= std::uint64_t{1} << bits.count) {
    throw std::invalid_argument("oracle: bits.value does not fit bits.count bits");
  }
}

}  // namespace

grid_place place_among_multiples(int spacing, const exact_value& x) {
  const fraction in_spacing = in_units(x, spacing);
  grid_place p;
  p.spacing = spacing;
  p.whole = in_spacing.denominator;
  divide_qr(in_spacing.numerator, p.whole, p.q, p.rest);
  p.to_half = cpp_int(p.rest * 2).compare(p.whole);
  p.odd = bit_test(p.q, 0);
  return p;
}

grid_place place_on_grid(const format& to, const exact_value& x) {
  const int spacing = exponent_of(x) - to.mantissa_bits;
  return place_among_multiples(std::max(spacing, to.min_subnormal_exponent), x);
}

bool goes_away(const grid_place& p, rounding mode, bool negative, const random_bits& bits) {
  if (p.rest == 0) return false;
  if (mode != rounding::stochastic) return goes_away(mode, p.to_half, p.odd, negative);
  // P3109 StochasticA: floor(v * 2^K) + R >= 2^K.
  return cpp_int(p.rest << bits.count) / p.whole + bits.value >= cpp_int(1) << bits.count;
}

rounded_code round_on_grid(const format& to, const grid_place& p, bool negative,
                           const cast_rule& rule, const random_bits& bits) {
  const bool signed_negative = negative && to.sign_bits == 1;
  const bool away = goes_away(p, rule.rounding, signed_negative, bits);
  const dyadic rounded{static_cast<std::uint64_t>(p.q) + (away ? 1 : 0), p.spacing};
  if (compare(rounded, decode_magnitude(to, to.max_finite)) > 0) {
    return {overflow_result(to, signed_negative, rule), true, true};
  }
  const bool exact = p.rest == 0 && signed_negative == negative;
  return {with_sign(to, signed_negative, encode_magnitude(to, rounded)), !exact};
}

rounded_code round_with_flags(const format& to, const exact_value& x, const cast_rule& rule,
                              const random_bits& bits) {
  require_valid(rule);
  if (rule.rounding == rounding::stochastic) require_valid(bits);
  if (x.kind == value_kind::nan) return {nan_result(to, x.negative, rule)};
  if (x.kind == value_kind::infinite) return {infinite_result(to, x.negative, rule)};
  if (x.numerator < 0 || x.denominator <= 0) {
    throw std::invalid_argument("oracle: x has a negative numerator or no positive denominator");
  }
  if (x.numerator == 0) return {with_sign(to, x.negative, 0), to.zero == zeros::none};

  return round_on_grid(to, place_on_grid(to, x), x.negative, rule, bits);
}

std::uint64_t round_exact(const format& to, const exact_value& x, const cast_rule& rule,
                          const random_bits& bits) {
  return round_with_flags(to, x, rule, bits).code;
}

std::uint64_t convert(const format& from, const format& to, std::uint64_t code,
                      const cast_rule& rule, const random_bits& bits) {
  return round_exact(to, decode(from, code), rule, bits);
}

}  // namespace samebits::oracle
