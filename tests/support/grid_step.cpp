// Grid steps from the oracle's own rounding on a row without an end.
#include "support/grid_step.hpp"

#include <optional>
#include <stdexcept>

#include "oracle/convert.hpp"

namespace samebits::support {

using oracle::cpp_rational;

namespace {

oracle::exact_value magnitude_of(oracle::exact_value x) {
  if (x.kind != oracle::value_kind::finite) {
    throw std::invalid_argument("support: x must be finite");
  }
  x.negative = false;
  return x;
}

cpp_rational value_of(const oracle::format& row, std::uint64_t code) {
  const oracle::dyadic d = oracle::decode_magnitude(row, code);
  oracle::exact_value x;
  x.numerator = d.significand;
  x.exponent = d.exponent;
  return oracle::rational_of(x);
}

}  // namespace

oracle::format unbounded(const oracle::format& to) {
  oracle::format row = to;
  row.sign_bits = 0;
  row.exponent_bits = 12;  // 2^12 binades: more than any source reaches, and fp64's row still fits
  row.storage_bits = 64;
  row.code_bits = row.exponent_bits + row.mantissa_bits + row.unused_low_bits;
  const std::uint64_t all_ones = ~std::uint64_t{0} >> (64 - row.code_bits);
  row.max_finite = (all_ones >> row.unused_low_bits) << row.unused_low_bits;
  row.infinity = std::nullopt;
  row.nan = oracle::nan_codes::none;
  row.canonical_nan = std::nullopt;
  return row;
}

grid_step locate(const oracle::format& to, const oracle::exact_value& x) {
  const oracle::format row = unbounded(to);
  const oracle::exact_value magnitude = magnitude_of(x);
  grid_step step;
  step.lower = oracle::round_exact(row, magnitude, {rounding::toward_zero});
  step.upper = oracle::round_exact(row, magnitude, {rounding::upward});
  if (step.lower != step.upper) {
    const cpp_rational from = value_of(row, step.lower);
    const cpp_rational v =
        (oracle::rational_of(magnitude) - from) / (value_of(row, step.upper) - from);
    step.part = numerator(v);
    step.whole = denominator(v);
  }
  return step;
}

std::uint64_t scaled_fraction(const grid_step& step, int k) {
  const oracle::cpp_int scaled = (step.part << k) / step.whole;
  return static_cast<std::uint64_t>(scaled);
}

expected_flags expected_flags_of(const oracle::format& to, const oracle::exact_value& x,
                                 const cast_rule& rule, const random_bits& bits,
                                 std::uint64_t expected_code) {
  if (x.kind != oracle::value_kind::finite) return {false, false};
  const oracle::exact_value result = oracle::decode(to, expected_code);
  const bool inexact = result.kind != oracle::value_kind::finite ||
                       oracle::rational_of(result) != oracle::rational_of(x);
  // The unbounded row has no sign, so the directed modes are told the direction of the magnitude.
  cast_rule on_magnitude = rule;
  if (x.negative && to.sign_bits == 1) {
    if (rule.rounding == rounding::upward) on_magnitude.rounding = rounding::downward;
    if (rule.rounding == rounding::downward) on_magnitude.rounding = rounding::upward;
  }
  const std::uint64_t rounded =
      oracle::round_exact(unbounded(to), magnitude_of(x), on_magnitude, bits);
  return {inexact, rounded > to.max_finite};
}

}  // namespace samebits::support
