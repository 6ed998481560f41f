// Arithmetic on single values: every operation rounds once into any destination and returns its
// flags. constexpr, host and device. Formats: fp32 (as float), fp16, bf16, e4m3, e5m2.
//
//   using namespace samebits;
//   const fp16 a(1.5f), b(200.0f);
//   const fp16 y = a * b + a;                    // each step rounded to nearest even, as IEEE says
//
//   // Any destination and rule, and the flags: 1.5 * 200 + 0.5, exact, then once into e4m3.
//   const auto r = fma<e4m3>(a, b, 0.5f, {rounding::toward_zero, overflow::saturate});
//   float(r.value)                               // 288
//   has(r.raised, flags::inexact)                // true
//
// Operands may have different formats: the exact result of their values is rounded once into the
// destination (formatOf of IEEE 754-2019 §5.4.1). docs/arithmetic.md lists the results for zeros,
// infinities and NaNs.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "numerics/arithmetic/arithmetic.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/flags.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/scalar.hpp"
#include "samebits/types.hpp"

namespace samebits {

/// Returns whether the format has arithmetic: fp32, fp16, bf16, e4m3 or e5m2.
SAMEBITS_HD constexpr bool has_arithmetic(format_id f) {
  return numerics::has_arithmetic(spec_of(f));
}

/// A code and its format.
struct operand {
  format_id format = format_id::fp32;
  std::uint64_t code = 0;
};

/// Operands of an operation. Operands that the operation does not have are not read.
struct operands {
  operand a;
  operand b = {};
  operand c = {};
};

/// Result of compute(): a code and the raised flags.
struct arithmetic_result {
  std::uint64_t code;  ///< in the destination's format
  flags raised;
};

/// Computes an operation on codes of formats known at run time, rounded once into `to`.
///
/// @param op  the operation
/// @param x  codes in formats that have arithmetic (has_arithmetic)
/// @param to  the destination's format; must have arithmetic
/// @param rule  rounding, overflow and NaN rules
/// @param random  read only by stochastic rounding: the K random bits, count in 1..32, value below
///   2^count
/// @returns the code and the flags
/// @note The result is undefined if a format or `random` is not as above. Callers check values that
///   users provide.
SAMEBITS_HD constexpr arithmetic_result compute(operation op, const operands& x, format_id to,
                                                const cast_rule& rule = {},
                                                const random_bits& random = {}) {
  const auto r =
      numerics::compute(op, {spec_of(x.a.format), x.a.code}, {spec_of(x.b.format), x.b.code},
                        {spec_of(x.c.format), x.c.code}, spec_of(to), rule,
                        numerics::align_random<std::uint64_t>(random.value, random.count));
  return {r.code, r.raised};
}

/// float, fp16, bf16, e4m3 or e5m2.
template <class T>
concept arithmetic_value = element<T> && numerics::has_arithmetic(spec_of(format_of<T>::value));

/// A value and the flags that its computation raised.
template <class T>
struct result {
  T value;
  flags raised;
};

namespace detail {

template <arithmetic_value T>
SAMEBITS_INLINE constexpr numerics::input input_of(T v) {
  constexpr format_spec format = spec_of(format_of<T>::value);
  if constexpr (std::is_same_v<T, float>) {
    return {format, __builtin_bit_cast(std::uint32_t, v)};
  } else {
    return {format, v.bits()};
  }
}

template <arithmetic_value T>
SAMEBITS_INLINE constexpr result<T> result_of(const numerics::outcome& r) {
  if constexpr (std::is_same_v<T, float>) {
    return {__builtin_bit_cast(float, static_cast<std::uint32_t>(r.code)), r.raised};
  } else {
    return {T::from_bits(static_cast<typename T::storage>(r.code)), r.raised};
  }
}

template <arithmetic_value To>
SAMEBITS_INLINE constexpr format_spec target() {
  constexpr format_spec format = spec_of(format_of<To>::value);
  return format;
}

SAMEBITS_INLINE constexpr std::uint64_t dither_of(const random_bits& random) {
  return numerics::align_random<std::uint64_t>(random.value, random.count);
}

template <operation Op, class To, class A, class B, class C>
SAMEBITS_INLINE constexpr result<To> apply(A a, B b, C c, const cast_rule& rule,
                                           const random_bits& random) {
  return result_of<To>(numerics::compute<Op>(input_of(a), input_of(b), input_of(c), target<To>(),
                                             rule, dither_of(random)));
}

}  // namespace detail

// Operations as functions of values. The destination is the first template argument: add<fp16>(a,
// b). Parameters of all of them:
// - rule: rounding, overflow and NaN rules.
// - random: read only by stochastic rounding: the K random bits, count in 1..32 and value <
//   2^count. The result is undefined otherwise.

/// Computes a + b. Terms that cancel give +0; with rounding downward, -0.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> add(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::add, To>(a, b, b, rule, random);
}
/// Computes a - b.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> sub(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::sub, To>(a, b, b, rule, random);
}
/// Computes a * b.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> mul(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::mul, To>(a, b, b, rule, random);
}
/// Computes a / b. Finite / 0 is infinite and raises only divide_by_zero.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> div(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::div, To>(a, b, b, rule, random);
}
/// Computes the square root of a. The root of -0 is -0; the root of a number below 0 is NaN.
template <arithmetic_value To, arithmetic_value A>
SAMEBITS_INLINE constexpr result<To> sqrt(A a, const cast_rule& rule = {},
                                          const random_bits& random = {}) {
  return detail::apply<operation::sqrt, To>(a, a, a, rule, random);
}
/// Computes a * b + c with one rounding.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B, arithmetic_value C>
SAMEBITS_INLINE constexpr result<To> fma(A a, B b, C c, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::fma, To>(a, b, c, rule, random);
}
/// Computes a - n * b, where n is a / b rounded to the nearest integer, ties to even (C's
/// remainder()).
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> rem(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::rem, To>(a, b, b, rule, random);
}
/// Rounds a to an integer by rule.rounding, then the integer into To by the same rule. Raises inexact
/// if the result differs from a.
template <arithmetic_value To, arithmetic_value A>
SAMEBITS_INLINE constexpr result<To> rint(A a, const cast_rule& rule = {},
                                          const random_bits& random = {}) {
  return detail::apply<operation::rint, To>(a, a, a, rule, random);
}
/// Returns the smaller operand, with -0 below +0; NaN if either operand is NaN.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> min(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::min, To>(a, b, b, rule, random);
}
/// Returns the larger operand, with -0 below +0; NaN if either operand is NaN.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> max(A a, B b, const cast_rule& rule = {},
                                         const random_bits& random = {}) {
  return detail::apply<operation::max, To>(a, b, b, rule, random);
}
/// Returns the smaller operand; if one operand is NaN, the other one.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> min_num(A a, B b, const cast_rule& rule = {},
                                             const random_bits& random = {}) {
  return detail::apply<operation::min_num, To>(a, b, b, rule, random);
}
/// Returns the larger operand; if one operand is NaN, the other one.
template <arithmetic_value To, arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr result<To> max_num(A a, B b, const cast_rule& rule = {},
                                             const random_bits& random = {}) {
  return detail::apply<operation::max_num, To>(a, b, b, rule, random);
}

/// Converts a into To with one rounding. The code is that of convert_code(); all five flags are
/// returned.
template <arithmetic_value To, arithmetic_value A>
SAMEBITS_INLINE constexpr result<To> convert(A a, const cast_rule& rule = {},
                                             const random_bits& random = {}) {
  const auto x = detail::input_of(a);
  return detail::result_of<To>(numerics::convert_number(x.format, x.code, detail::target<To>(),
                                                        rule, detail::dither_of(random)));
}

/// Computes a * 2^n, rounded once.
template <arithmetic_value To, arithmetic_value A>
SAMEBITS_INLINE constexpr result<To> scale_b(A a, std::int32_t n, const cast_rule& rule = {},
                                             const random_bits& random = {}) {
  const auto x = detail::input_of(a);
  return detail::result_of<To>(numerics::scale_exponent(x.format, x.code, n, detail::target<To>(),
                                                        rule, detail::dither_of(random)));
}

/// Returns the exponent of |a|, floor(log2 |a|). The result is INT32_MIN for 0 and NaN and
/// INT32_MAX for Inf; all three raise invalid.
template <arithmetic_value A>
SAMEBITS_INLINE constexpr result<std::int32_t> log_b(A a) {
  const auto x = detail::input_of(a);
  const auto r = numerics::exponent_of(x.format, x.code);
  return {static_cast<std::int32_t>(static_cast<std::uint32_t>(r.bits)), r.raised};
}

/// std::int32_t, std::int64_t, std::uint32_t or std::uint64_t.
template <class T>
concept arithmetic_integer = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

/// Converts a to an integer, rounded by `mode`. A value out of range gives the nearest bound, a NaN
/// gives 0; both raise invalid and not inexact.
template <arithmetic_integer To, arithmetic_value A>
SAMEBITS_INLINE constexpr result<To> to_integer(A a, rounding mode = rounding::nearest_even,
                                                const random_bits& random = {}) {
  const auto x = detail::input_of(a);
  const auto r = numerics::to_integer(x.format, x.code, {sizeof(To) * 8, std::is_signed_v<To>},
                                      mode, detail::dither_of(random));
  return {static_cast<To>(static_cast<std::make_unsigned_t<To>>(r.bits)), r.raised};
}

/// Converts an integer into To, rounded once.
template <arithmetic_value To, arithmetic_integer From>
SAMEBITS_INLINE constexpr result<To> from_integer(From n, const cast_rule& rule = {},
                                                  const random_bits& random = {}) {
  return detail::result_of<To>(numerics::from_integer(
      {sizeof(From) * 8, std::is_signed_v<From>}, static_cast<std::make_unsigned_t<From>>(n),
      detail::target<To>(), rule, detail::dither_of(random)));
}

/// The relation of a to b. At most one of less, equal and greater is true. None is true if a and b
/// are unordered.
struct comparison {
  bool less, equal, greater;
  flags raised;  ///< invalid for a signalling NaN only (the quiet predicates of IEEE 754)

  [[nodiscard]] SAMEBITS_HD constexpr bool unordered() const { return !less && !equal && !greater; }
};

/// Compares two values as numbers: NaN is unordered, -0 equals +0.
template <arithmetic_value A, arithmetic_value B>
SAMEBITS_INLINE constexpr comparison compare(A a, B b) {
  const auto x = detail::input_of(a);
  const auto y = detail::input_of(b);
  const auto r = numerics::compare_numbers(x.format, x.code, y.format, y.code);
  return {r.less, r.equal, r.greater, r.raised};
}

/// Returns totalOrder(a, b): -NaN < -Inf < ... < -0 < +0 < ... < Inf < NaN, with NaNs ordered by
/// their payload.
template <arithmetic_value T>
SAMEBITS_INLINE constexpr bool total_order(T a, T b) {
  const auto x = detail::input_of(a);
  return numerics::total_order(x.format, x.code, detail::input_of(b).code);
}

/// Returns the next value above, with the code of next_up(format, code). Raises invalid for a
/// signalling NaN.
template <arithmetic_value T>
SAMEBITS_INLINE constexpr result<T> next_up(T a) {
  const auto x = detail::input_of(a);
  return detail::result_of<T>(
      {numerics::next_up(x.format, x.code),
       numerics::is_signaling(x.format, x.code) ? flags::invalid : flags::none});
}
/// Returns the next value below, with the code of next_down(format, code). Raises invalid for a
/// signalling NaN.
template <arithmetic_value T>
SAMEBITS_INLINE constexpr result<T> next_down(T a) {
  const auto x = detail::input_of(a);
  return detail::result_of<T>(
      {numerics::next_down(x.format, x.code),
       numerics::is_signaling(x.format, x.code) ? flags::invalid : flags::none});
}

// Operations with the names of <cmath>: one format, to nearest even, without flags. Templates such
// as Eigen's find these functions by the type of their argument.

template <format_id F>
SAMEBITS_HD constexpr float_value<F> sqrt(float_value<F> a) {
  return sqrt<float_value<F>>(a).value;
}
template <format_id F>
SAMEBITS_HD constexpr float_value<F> fma(float_value<F> a, float_value<F> b, float_value<F> c) {
  return fma<float_value<F>>(a, b, c).value;
}
template <format_id F>
SAMEBITS_HD constexpr float_value<F> remainder(float_value<F> a, float_value<F> b) {
  return rem<float_value<F>>(a, b).value;
}
/// Returns a with a clear sign bit, also for a NaN.
template <format_id F>
SAMEBITS_HD constexpr float_value<F> abs(float_value<F> a) {
  return is_negative(F, a.bits()) ? -a : a;
}
/// Returns a with the sign bit of b, also for NaNs.
template <format_id F>
SAMEBITS_HD constexpr float_value<F> copysign(float_value<F> a, float_value<F> b) {
  return is_negative(F, a.bits()) == is_negative(F, b.bits()) ? a : -a;
}
template <format_id F>
SAMEBITS_HD constexpr bool isnan(float_value<F> a) {
  return is_nan(F, a.bits());
}
template <format_id F>
SAMEBITS_HD constexpr bool isinf(float_value<F> a) {
  return classify(F, a.bits()) == number_class::infinite;
}
template <format_id F>
SAMEBITS_HD constexpr bool isfinite(float_value<F> a) {
  return is_finite(F, a.bits());
}
template <format_id F>
SAMEBITS_HD constexpr bool signbit(float_value<F> a) {
  return is_negative(F, a.bits());
}

}  // namespace samebits
