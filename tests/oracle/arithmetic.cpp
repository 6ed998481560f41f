// Arithmetic by cases of NaN, infinity and zero, then exact integers (contract §5).
#include "oracle/arithmetic.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>
#include <utility>

#include "oracle/convert.hpp"
#include "oracle/fraction.hpp"
#include "oracle/specials.hpp"

namespace samebits::oracle {
namespace {

exact_value nan_value() {
  exact_value x;
  x.kind = value_kind::nan;
  return x;
}

exact_value infinity(bool negative) {
  exact_value x;
  x.kind = value_kind::infinite;
  x.negative = negative;
  return x;
}

exact_value zero(bool negative) {
  exact_value x;
  x.negative = negative;
  return x;
}

exact_outcome invalid_operation() { return {nan_value(), flag_invalid}; }

exact_value negated(exact_value x) {
  x.negative = !x.negative;
  return x;
}

struct integer_step {
  cpp_int q;
  bool inexact;
};

/// |x| rounded to an integer as contract §3 rounds to the grid.
integer_step round_to_integer(const exact_value& x, rounding mode, const random_bits& bits) {
  const grid_place p = place_among_multiples(0, x);
  return {goes_away(p, mode, x.negative, bits) ? cpp_int(p.q + 1) : p.q, p.rest != 0};
}

exact_value integer_value(const cpp_int& magnitude, bool negative) {
  exact_value x;
  x.numerator = magnitude;
  x.negative = negative;
  return x;
}

// --- the operations; operands are not NaN --------------------------------------------------------

exact_outcome sum(const exact_value& a, const exact_value& b, rounding mode) {
  if (is_infinite(a) && is_infinite(b) && a.negative != b.negative) return invalid_operation();
  if (is_infinite(a)) return {a};
  if (is_infinite(b)) return {b};
  const int unit = std::min(a.exponent, b.exponent);
  cpp_int x = in_units(a, unit).numerator;
  cpp_int y = in_units(b, unit).numerator;
  if (a.negative) x = -x;
  if (b.negative) y = -y;
  const cpp_int total = x + y;
  // "An exact zero sum of terms of equal sign keeps it; of opposite signs is +0, in downward -0."
  if (total == 0) return {zero(a.negative == b.negative ? a.negative : mode == rounding::downward)};
  exact_value result = integer_value(abs(total), total < 0);
  result.exponent = unit;
  return {result};
}

/// The product of any values; invalid only of zero and Inf.
exact_outcome product(const exact_value& a, const exact_value& b) {
  if (is_nan(a) || is_nan(b)) return {nan_value()};
  const bool negative = a.negative != b.negative;
  if ((is_infinite(a) && is_zero(b)) || (is_zero(a) && is_infinite(b))) return invalid_operation();
  if (is_infinite(a) || is_infinite(b)) return {infinity(negative)};
  exact_value result = integer_value(a.numerator * b.numerator, negative);
  result.denominator = a.denominator * b.denominator;
  result.exponent = a.exponent + b.exponent;
  return {result};
}

exact_outcome quotient(const exact_value& a, const exact_value& b) {
  const bool negative = a.negative != b.negative;
  if (is_infinite(a) && is_infinite(b)) return invalid_operation();
  if (is_zero(a) && is_zero(b)) return invalid_operation();
  if (is_infinite(a)) return {infinity(negative)};
  if (is_infinite(b)) return {zero(negative)};
  if (is_zero(b)) return {infinity(negative), flag_divide_by_zero};
  exact_value result = integer_value(a.numerator, negative);
  result.denominator = b.numerator;
  result.exponent = a.exponent - b.exponent;
  return {result};
}

exact_outcome root(const exact_value& a) {
  if (is_zero(a)) return {a};  // sqrt(-0) = -0
  if (a.negative) return invalid_operation();
  if (is_infinite(a)) return {a};
  // |a| = n * 2^(2e) with n of 318 bits or more, so that the root of n has 159 or more.
  int shift = 320 - static_cast<int>(msb(a.numerator));
  if ((a.exponent - shift) % 2 != 0) ++shift;
  const cpp_int n = a.numerator << shift;
  cpp_int rest;
  const cpp_int s = boost::multiprecision::sqrt(n, rest);
  exact_value result = integer_value(s * 2 + (rest == 0 ? 0 : 1), false);
  result.exponent = (a.exponent - shift) / 2 - 1;
  return {result};
}

exact_outcome remainder(const exact_value& x, const exact_value& y) {
  if (is_infinite(x) || is_zero(y)) return invalid_operation();
  if (is_infinite(y)) return {x};
  if (is_zero(x)) return {x};
  const int unit = std::min(x.exponent, y.exponent);
  const cpp_int a = in_units(x, unit).numerator;
  const cpp_int b = in_units(y, unit).numerator;
  const exact_value ratio{value_kind::finite, false, a, b};
  const cpp_int n = round_to_integer(ratio, rounding::nearest_even, {}).q;
  const cpp_int rest = a - n * b;
  // Signs: |x| - n|y| has the sign of the result where x is positive; a zero keeps x's.
  const bool negative = rest == 0 ? x.negative : (rest < 0) != x.negative;
  exact_value result = integer_value(abs(rest), negative);
  result.exponent = unit;
  return {result};
}

exact_outcome integral(const exact_value& x, rounding mode, const random_bits& bits) {
  if (is_infinite(x)) return {x};
  const integer_step step = round_to_integer(x, mode, bits);
  return {integer_value(step.q, x.negative), step.inexact ? flag_inexact : 0};
}

/// One of two numbers: of equal ones, which only zeros of two signs tell apart, -0 is the lesser.
exact_value lesser(const exact_value& a, const exact_value& b) {
  const int order = compare_numbers(a, b);
  if (order == 0) return a.negative ? a : b;
  return order < 0 ? a : b;
}

exact_value greater(const exact_value& a, const exact_value& b) {
  const int order = compare_numbers(a, b);
  if (order == 0) return a.negative ? b : a;
  return order < 0 ? b : a;
}

bool is_number_form(operation op) { return op == operation::min_num || op == operation::max_num; }

/// A NaN among the operands, of an operation that is not min_num or max_num.
exact_outcome nan_operands(operation op, const std::array<exact_value, 3>& v, unsigned signaling) {
  // "0*Inf in fma even if c is NaN"
  if (op == operation::fma && !is_nan(v[0]) && !is_nan(v[1])) {
    signaling |= product(v[0], v[1]).flags;
  }
  return {nan_value(), signaling};
}

exact_outcome of_numbers(operation op, const std::array<exact_value, 3>& v, rounding mode,
                         const random_bits& bits) {
  switch (op) {
    case operation::add: return sum(v[0], v[1], mode);
    case operation::sub: return sum(v[0], negated(v[1]), mode);
    case operation::mul: return product(v[0], v[1]);
    case operation::div: return quotient(v[0], v[1]);
    case operation::sqrt: return root(v[0]);
    case operation::rem: return remainder(v[0], v[1]);
    case operation::rint: return integral(v[0], mode, bits);
    case operation::min:
    case operation::min_num: return {lesser(v[0], v[1])};
    case operation::max:
    case operation::max_num: return {greater(v[0], v[1])};
    case operation::fma: {
      const exact_outcome p = product(v[0], v[1]);
      if (is_nan(p.value)) return p;
      return sum(p.value, v[2], mode);
    }
  }
  throw std::invalid_argument("oracle: op is not an operation");
}

unsigned signaling_flags(std::span<const operand> operands) {
  for (const operand& o : operands) {
    if (is_signaling(*o.from, o.code)) return flag_invalid;
  }
  return 0;
}

}  // namespace

exact_value exact_product(const exact_value& a, const exact_value& b) {
  return product(a, b).value;
}

bool is_signaling(const format& f, std::uint64_t code) {
  if (!f.infinity || decode(f, code).kind != value_kind::nan) return false;
  const int first_mantissa_bit = f.unused_low_bits + f.mantissa_bits - 1;
  return (code >> first_mantissa_bit) % 2 == 0;
}

exact_outcome exact_result(operation op, std::span<const operand> operands, rounding mode,
                           const random_bits& bits) {
  if (operands.size() != static_cast<std::size_t>(operand_count(op))) {
    throw std::invalid_argument("oracle: not as many operands as the operation takes");
  }
  std::array<exact_value, 3> v;
  bool any_nan = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    v[i] = decode(*operands[i].from, operands[i].code);
    any_nan = any_nan || is_nan(v[i]);
  }
  const unsigned signaling = signaling_flags(operands);
  if (any_nan && is_number_form(op)) {
    // "Number forms return the other operand, NaN if both"; a signalling NaN is invalid even so.
    return {is_nan(v[0]) ? v[1] : v[0], signaling};
  }
  if (any_nan) return nan_operands(op, v, signaling);
  return of_numbers(op, v, mode, bits);
}

placed_outcome::placed_outcome(const format& to, exact_outcome x) : to_(&to), x_(std::move(x)) {
  if (x_.value.kind != value_kind::finite || is_zero(x_.value)) return;
  const int spacing = exponent_of(x_.value) - to.mantissa_bits;
  unbounded_ = place_among_multiples(spacing, x_.value);
  on_grid_ = spacing >= to.min_subnormal_exponent ? unbounded_ : place_on_grid(to, x_.value);
}

rounded_result placed_outcome::by(const cast_rule& rule, const random_bits& bits) const {
  const format& to = *to_;
  // preserve_sign: neither an invalid operation nor a NaN among several operands has a sign to
  // keep, so this NaN is the positive one; that of an overflow below has the result's sign.
  if (is_nan(x_.value)) return {nan_result(to, false, rule), x_.flags};
  const bool negative = x_.value.negative;
  if (is_infinite(x_.value)) {
    const std::uint64_t code = infinite_result(to, negative, rule);
    if ((x_.flags & flag_divide_by_zero) != 0) return {code, flag_divide_by_zero};  // "alone"
    const value_kind kind = decode(to, code).kind;
    if (kind == value_kind::nan) return {code, x_.flags | flag_invalid};
    if (kind == value_kind::finite) return {code, x_.flags | flag_overflow | flag_inexact};
    return {code, x_.flags};
  }
  if (is_zero(x_.value)) return {with_sign(to, negative, 0), x_.flags};

  const rounded_code rounded = round_on_grid(to, on_grid_, negative, rule, bits);
  if (rounded.overflow) return {rounded.code, x_.flags | flag_overflow | flag_inexact};
  if (!rounded.inexact) return {rounded.code, x_.flags};
  // "|result| is below min normal as rounded with unbounded exponent"
  const int binade = unbounded_.spacing + to.mantissa_bits;
  const auto reaches_normal = [&] {
    const bool away = goes_away(unbounded_, rule.rounding, negative, bits);
    return unbounded_.q + (away ? 1 : 0) == cpp_int(2) << to.mantissa_bits;
  };
  const bool tiny = binade < to.min_normal_exponent - 1 ||
                    (binade == to.min_normal_exponent - 1 && !reaches_normal());
  return {rounded.code, x_.flags | flag_inexact | (tiny ? flag_underflow : 0)};
}

std::uint64_t placed_outcome::smallest_away(int k) const {
  if (on_grid_.rest == 0) return 0;
  const cpp_int limit = cpp_int(1) << k;
  return static_cast<std::uint64_t>(limit - cpp_int(on_grid_.rest << k) / on_grid_.whole);
}

rounded_result round_outcome(const format& to, const exact_outcome& x, const cast_rule& rule,
                             const random_bits& bits) {
  return placed_outcome(to, x).by(rule, bits);
}

rounded_result arithmetic(operation op, std::span<const operand> operands, const format& to,
                          const cast_rule& rule, const random_bits& bits) {
  return round_outcome(to, exact_result(op, operands, rule.rounding, bits), rule, bits);
}

compared compare_values(const operand& a, const operand& b) {
  const std::array<operand, 2> both{a, b};
  const unsigned flags = signaling_flags(both);
  const exact_value x = decode(*a.from, a.code);
  const exact_value y = decode(*b.from, b.code);
  if (is_nan(x) || is_nan(y)) return {relation::unordered, flags};
  const int order = compare_numbers(x, y);
  return {order < 0 ? relation::less : order > 0 ? relation::greater : relation::equal, flags};
}

bool total_order(const format& f, std::uint64_t a, std::uint64_t b) {
  const auto key = [&](std::uint64_t code) {
    const std::uint64_t bits = meaningful_bits(f, code);
    const std::uint64_t sign = std::uint64_t{1} << (f.code_bits - 1);
    const bool negative = f.sign_bits == 1 && bits >= sign;
    // -0 lies just below +0: the negative ones are one further down.
    return negative ? -1 - cpp_int(bits - sign) : cpp_int(bits);
  };
  return key(a) <= key(b);
}

integer_result to_integer(const operand& a, int bits, bool is_signed, rounding mode,
                          const random_bits& random) {
  const cpp_int largest = (cpp_int(1) << (is_signed ? bits - 1 : bits)) - 1;
  const cpp_int minimum = is_signed ? cpp_int(-largest - 1) : cpp_int(0);
  const exact_value x = decode(*a.from, a.code);
  if (is_nan(x)) return {0, flag_invalid};
  if (is_infinite(x)) return {x.negative ? minimum : largest, flag_invalid};
  const integer_step step = round_to_integer(x, mode, random);
  const cpp_int value = x.negative ? cpp_int(-step.q) : step.q;
  if (value < minimum || value > largest) return {x.negative ? minimum : largest, flag_invalid};
  return {value, step.inexact ? flag_inexact : 0};
}

rounded_result from_integer(const cpp_int& n, const format& to, const cast_rule& rule,
                            const random_bits& bits) {
  return round_outcome(to, {integer_value(abs(n), n < 0)}, rule, bits);
}

rounded_result scale_b(const operand& a, std::int32_t n, const format& to, const cast_rule& rule,
                       const random_bits& bits) {
  exact_outcome x{decode(*a.from, a.code)};
  if (is_nan(x.value)) {
    const std::array<operand, 1> one{a};
    return round_outcome(to, {nan_value(), signaling_flags(one)}, rule, bits);
  }
  // Beyond +-2000 every format here has long overflowed or vanished: the rest changes nothing but
  // the size of the integers.
  x.value.exponent += std::clamp(n, -2000, 2000);
  return round_outcome(to, x, rule, bits);
}

integer_result log_b(const operand& a) {
  const exact_value x = decode(*a.from, a.code);
  if (is_nan(x) || is_zero(x)) return {std::numeric_limits<std::int32_t>::min(), flag_invalid};
  if (is_infinite(x)) return {std::numeric_limits<std::int32_t>::max(), flag_invalid};
  return {exponent_of(x), 0};
}

}  // namespace samebits::oracle
