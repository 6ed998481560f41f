// Elementary operations: the cases of NaN, infinity and zero, then rational arithmetic.
#include "oracle/elementary.hpp"

#include "oracle/convert.hpp"
#include "oracle/exact.hpp"

namespace samebits::oracle {
namespace {

constexpr cast_rule nearest{rounding::nearest_even, overflow::ieee, nan_policy::canonical};

bool is_nan(const exact_value& x) { return x.kind == value_kind::nan; }
bool is_infinite(const exact_value& x) { return x.kind == value_kind::infinite; }
bool is_zero(const exact_value& x) { return x.kind == value_kind::finite && x.numerator == 0; }

exact_value special(value_kind kind, bool negative) {
  exact_value x;
  x.kind = kind;
  x.negative = negative;
  return x;
}

exact_value not_a_number() { return special(value_kind::nan, false); }

exact_value signed_zero(bool negative) { return special(value_kind::finite, negative); }

exact_value negated(exact_value x) {
  x.negative = !x.negative;
  return x;
}

exact_value sum(const exact_value& a, const exact_value& b) {
  if (is_nan(a) || is_nan(b)) return not_a_number();
  if (is_infinite(a) && is_infinite(b)) return a.negative == b.negative ? a : not_a_number();
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  // An exact zero sum is +0 unless both terms have the sign minus (contract §5).
  return exact_from(rational_of(a) + rational_of(b), a.negative && b.negative);
}

exact_value product(const exact_value& a, const exact_value& b) {
  const bool negative = a.negative != b.negative;
  if (is_nan(a) || is_nan(b)) return not_a_number();
  if (is_infinite(a) || is_infinite(b)) {
    return is_zero(a) || is_zero(b) ? not_a_number() : special(value_kind::infinite, negative);
  }
  return exact_from(rational_of(a) * rational_of(b), negative);
}

exact_value quotient(const exact_value& a, const exact_value& b) {
  const bool negative = a.negative != b.negative;
  if (is_nan(a) || is_nan(b)) return not_a_number();
  if (is_infinite(a))
    return is_infinite(b) ? not_a_number() : special(value_kind::infinite, negative);
  if (is_infinite(b)) return signed_zero(negative);
  if (is_zero(b)) return is_zero(a) ? not_a_number() : special(value_kind::infinite, negative);
  return exact_from(rational_of(a) / rational_of(b), negative);
}

const format& fp32() { return format_named("fp32"); }

}  // namespace

std::uint64_t add(const format& f, std::uint64_t a, std::uint64_t b) {
  return round_exact(f, sum(decode(f, a), decode(f, b)), nearest);
}

std::uint64_t subtract(const format& f, std::uint64_t a, std::uint64_t b) {
  return round_exact(f, sum(decode(f, a), negated(decode(f, b))), nearest);
}

std::uint64_t multiply(const format& f, std::uint64_t a, std::uint64_t b) {
  return round_exact(f, product(decode(f, a), decode(f, b)), nearest);
}

std::uint64_t divide(const format& f, std::uint64_t a, std::uint64_t b) {
  return round_exact(f, quotient(decode(f, a), decode(f, b)), nearest);
}

std::uint32_t multiply32(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(multiply(fp32(), a, b));
}

std::uint32_t divide32(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(divide(fp32(), a, b));
}

}  // namespace samebits::oracle
