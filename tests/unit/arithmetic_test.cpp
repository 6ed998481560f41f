// The value interface of arithmetic: what a caller writes, at compile time and at run time, and
// that its templates compute what compute() does, which the exhaustive tests check.
#include "samebits/arithmetic.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>

#include "support/arithmetic_case.hpp"
#include "support/effort.hpp"
#include "support/rules.hpp"

namespace samebits {
namespace {

using namespace support;

constexpr fp16 half(float x) { return fp16(x); }
constexpr e4m3 eight(float x) { return e4m3(x); }

// The header's example.
static_assert((half(1.5f) * half(200.0f) + half(1.5f)).bits() == half(301.5f).bits());
constexpr auto example =
    fma<e4m3>(half(1.5f), half(200.0f), 0.5f, {rounding::toward_zero, overflow::saturate});
static_assert(static_cast<float>(example.value) == 288.0f);
static_assert(example.raised == flags::inexact && has(example.raised, flags::inexact));

// The flags of each kind.
static_assert(div<fp16>(half(1), half(0)).raised == flags::divide_by_zero);
static_assert(sqrt<fp16>(half(-1)).raised == flags::invalid);
static_assert(mul<e4m3>(eight(448), eight(2)).raised == (flags::overflow | flags::inexact));
static_assert(mul<fp16>(half(6e-8f), half(0.3f)).raised == (flags::underflow | flags::inexact));
static_assert(add<fp16>(half(1), half(2)).raised == flags::none);

// Operators.
static_assert((eight(448) + eight(16)).bits() == 0x7E && (eight(448) + eight(18)).bits() == 0x7F);
static_assert((half(1) / half(3)).bits() == 0x3555);
static_assert((half(1) - half(1)).bits() == 0 && (-half(0)).bits() == 0x8000);
static_assert([] {
  bf16 x(3.0f);
  x += bf16(1.0f);
  x *= bf16(2.0f);
  x -= bf16(1.0f);
  x /= bf16(2.0f);
  return static_cast<float>(x) == 3.5f;
}());

// The names of <cmath>.
static_assert(sqrt(half(2)).bits() == 0x3DA8);
static_assert(fma(half(3), half(4), half(5)) == half(17));
static_assert(remainder(half(5), half(3)) == half(-1));
static_assert(abs(half(-2)) == half(2) && abs(eight(-0.0f)).bits() == 0x00);
static_assert(copysign(half(2), half(-1)) == half(-2) && signbit(half(-0.0f)));
static_assert(isnan(half(0) / half(0)) && isinf(half(1) / half(0)) && isfinite(half(1)));

// Integers, exponents, orders.
static_assert(to_integer<std::int32_t>(half(-2.5f)).value == -2);
static_assert(to_integer<std::int32_t>(half(-2.5f), rounding::downward).value == -3);
static_assert(to_integer<std::uint64_t>(-1.0f).raised == flags::invalid);
static_assert(to_integer<std::int64_t>(3e38f).value == std::numeric_limits<std::int64_t>::max());
static_assert(from_integer<e4m3>(17).value == eight(16));
static_assert(scale_b<e4m3>(1.25f, 3).value == eight(10));
static_assert(log_b(half(0.3f)).value == -2);
static_assert(compare(half(1), eight(1)).equal && compare(half(1), 2.0f).less);
static_assert(compare(half(1), eight(0) / eight(0)).unordered());
static_assert(total_order(-half(0), half(0)) && !total_order(half(0), -half(0)));
static_assert(next_up(half(1)).value.bits() == 0x3C01);

static_assert(has_arithmetic(format_id::fp32) && has_arithmetic(format_id::fp16) &&
              has_arithmetic(format_id::bf16) && has_arithmetic(format_id::e4m3) &&
              has_arithmetic(format_id::e5m2));
static_assert(!has_arithmetic(format_id::fp64) && !has_arithmetic(format_id::tf32) &&
              !has_arithmetic(format_id::e4m3fnuz) && !has_arithmetic(format_id::e8m0));
static_assert(!arithmetic_value<double> && !arithmetic_value<int>);

TEST(Operations, NamesAreFoundAgain) {
  for (const operation op : all_operations()) EXPECT_EQ(find_enumerator<operation>(name(op)), op);
  EXPECT_EQ(find_enumerator<operation>("pow"), std::nullopt);
  EXPECT_EQ(operand_count(operation::fma), 3);
  EXPECT_EQ(operand_count(operation::rint), 1);
  EXPECT_EQ(operand_count(operation::max_num), 2);
}

template <class T>
T value_of(std::uint64_t code) {
  if constexpr (std::is_same_v<T, float>) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(code));
  } else {
    return T::from_bits(static_cast<typename T::storage>(code));
  }
}

template <class T>
arithmetic_result codes_of(const result<T>& r) {
  if constexpr (std::is_same_v<T, float>) {
    return {__builtin_bit_cast(std::uint32_t, r.value), r.raised};
  } else {
    return {r.value.bits(), r.raised};
  }
}

template <class To, class T>
arithmetic_result by_template(operation op, T a, T b, T c, const cast_rule& rule,
                              const random_bits& random) {
  switch (op) {
    case operation::add: return codes_of(add<To>(a, b, rule, random));
    case operation::sub: return codes_of(sub<To>(a, b, rule, random));
    case operation::mul: return codes_of(mul<To>(a, b, rule, random));
    case operation::div: return codes_of(div<To>(a, b, rule, random));
    case operation::sqrt: return codes_of(sqrt<To>(a, rule, random));
    case operation::fma: return codes_of(fma<To>(a, b, c, rule, random));
    case operation::rem: return codes_of(rem<To>(a, b, rule, random));
    case operation::rint: return codes_of(rint<To>(a, rule, random));
    case operation::min: return codes_of(min<To>(a, b, rule, random));
    case operation::max: return codes_of(max<To>(a, b, rule, random));
    case operation::min_num: return codes_of(min_num<To>(a, b, rule, random));
    case operation::max_num: return codes_of(max_num<To>(a, b, rule, random));
  }
  return {};
}

template <class To, class T>
void expect_template_computes_the_same() {
  std::mt19937_64 engine(17);
  const word_source next = [&] { return engine(); };
  arithmetic_case c;
  c.to = format_of<To>::value;
  c.where = "the template";
  constexpr format_id from = format_of<T>::value;
  for (int i = 0; i < 300 / static_cast<int>(effort_divisor); ++i) {
    for (const operation op : all_operations()) {
      c.op = op;
      c.x = draw_operands(op, {from, from, from}, c.to, next);
      c.random = draw_random(next);
      for (int m = 0; m < enum_count<rounding>; ++m) {
        c.rule = {static_cast<rounding>(m), overflow_policies[next() % 3],
                  nan_policies[next() % 2]};
        const auto got = by_template<To>(op, value_of<T>(c.x.a.code), value_of<T>(c.x.b.code),
                                         value_of<T>(c.x.c.code), c.rule, c.random);
        ASSERT_TRUE(same_result(c, got, expected_result(c)));
      }
    }
  }
}

TEST(ArithmeticTemplates, OneFormat) {
  expect_template_computes_the_same<float, float>();
  expect_template_computes_the_same<fp16, fp16>();
  expect_template_computes_the_same<bf16, bf16>();
  expect_template_computes_the_same<e4m3, e4m3>();
  expect_template_computes_the_same<e5m2, e5m2>();
}

TEST(ArithmeticTemplates, MixedFormats) {
  expect_template_computes_the_same<e4m3, float>();
  expect_template_computes_the_same<fp16, float>();
  expect_template_computes_the_same<float, bf16>();
  expect_template_computes_the_same<e5m2, e4m3>();
}

static_assert(convert<e4m3>(half(465.0f)).raised == (flags::overflow | flags::inexact));
static_assert(convert<e4m3>(half(465.0f), {.overflow = overflow::saturate}).value.bits() == 0x7E);
static_assert(convert<fp16>(fp16::from_bits(0x7D00)).raised == flags::invalid);  // signalling
static_assert(convert<float>(half(1.5f)).raised == flags::none);

/// Codes as convert_code() gives them, which knows NaNs with signs; flags as scale_b() by 0, which
/// the oracle checks.
template <class To, class From>
void expect_conversion_with_flags(std::uint32_t codes, std::uint32_t step) {
  std::mt19937_64 engine(23);
  const word_source next = [&] { return engine(); };
  constexpr format_id from = format_of<From>::value;
  constexpr format_id to = format_of<To>::value;
  for (std::uint64_t code = 0; code <= codes; code += step) {
    const auto value = value_of<From>(code);
    const random_bits random = draw_random(next);
    for (int m = 0; m < enum_count<rounding>; ++m) {
      const cast_rule rule = {static_cast<rounding>(m), overflow_policies[next() % 3],
                              nan_policies[next() % 2]};
      const result<To> got = convert<To>(value, rule, random);
      const converted expected = convert_code(from, to, code, rule, random);
      ASSERT_EQ(detail::input_of(got.value).code, expected.code)
          << name(from) << ' ' << code << " to " << name(to) << ", " << name(rule.rounding) << ", "
          << name(rule.overflow) << ", " << name(rule.nan);
      ASSERT_EQ(got.raised, scale_b<To>(value, 0, rule, random).raised) << code;
      ASSERT_TRUE(!expected.inexact || has(got.raised, flags::inexact)) << code;
    }
  }
}

TEST(ArithmeticTemplates, ConversionsHaveFlags) {
  constexpr auto d = static_cast<std::uint32_t>(effort_divisor);
  expect_conversion_with_flags<e4m3, fp16>(0xFFFF, d);
  expect_conversion_with_flags<e5m2, bf16>(0xFFFF, d);
  expect_conversion_with_flags<bf16, fp16>(0xFFFF, d);
  expect_conversion_with_flags<float, e4m3>(0xFF, 1);
  expect_conversion_with_flags<fp16, e5m2>(0xFF, 1);
  expect_conversion_with_flags<e4m3, e5m2>(0xFF, 1);
  expect_conversion_with_flags<fp16, float>(0xFFFFFFFF - 49999, 49999 * d);
  expect_conversion_with_flags<e4m3, float>(0xFFFFFFFF - 49999, 49999 * d);
  expect_conversion_with_flags<float, float>(0xFFFFFFFF - 49999, 49999 * d);
}

/// Constant rules fold to other code than run-time ones; the operators are such.
template <class T>
void expect_operators_round_to_nearest_even() {
  std::mt19937_64 engine(18);
  const word_source next = [&] { return engine(); };
  arithmetic_case c;
  c.to = T::format;
  c.where = "the operator";
  const auto expect = [&](operation op, T got) {
    c.op = op;
    const oracle::rounded_result expected = expected_result(c);
    ASSERT_TRUE(same_result(c, {got.bits(), static_cast<flags>(expected.flags)}, expected));
  };
  for (int i = 0; i < 20000 / static_cast<int>(effort_divisor); ++i) {
    const auto op = static_cast<operation>(next() % 4);
    c.x = draw_operands(op, {T::format, T::format, T::format}, c.to, next);
    const T a = value_of<T>(c.x.a.code);
    const T b = value_of<T>(c.x.b.code);
    expect(operation::add, a + b);
    expect(operation::sub, a - b);
    expect(operation::mul, a * b);
    expect(operation::div, a / b);
    expect(operation::sqrt, sqrt(a));
    expect(operation::rem, remainder(a, b));
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(ArithmeticOperators, Fp16) { expect_operators_round_to_nearest_even<fp16>(); }
TEST(ArithmeticOperators, Bf16) { expect_operators_round_to_nearest_even<bf16>(); }
TEST(ArithmeticOperators, E4m3) { expect_operators_round_to_nearest_even<e4m3>(); }
TEST(ArithmeticOperators, E5m2) { expect_operators_round_to_nearest_even<e5m2>(); }

/// Every code, so that the square root's estimate is right for every significand.
TEST(SquareRoot, EverySignificandAndParity) {
  for (std::uint32_t code = 0x3F800000; code < 0x40800000;
       code += static_cast<std::uint32_t>(effort_divisor)) {
    const numerics::number x = numerics::unpack(spec_of(format_id::fp32), code);
    const int odd = x.exponent & 1;
    const std::uint64_t n = x.sig << (1 + odd);
    for (const int zeros : {0, 13}) {
      const auto got = numerics::root_of(n, numerics::reciprocal_root(x.sig, odd), zeros);
      const std::uint64_t padded = n << (2 * zeros);
      ASSERT_LE(got.root * got.root, padded) << std::hex << code;
      ASSERT_GT((got.root + 1) * (got.root + 1), padded) << std::hex << code;
      ASSERT_EQ(got.inexact, got.root * got.root != padded) << std::hex << code;
    }
  }
}

}  // namespace
}  // namespace samebits
