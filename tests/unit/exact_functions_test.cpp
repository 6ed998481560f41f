// Functions of the rule `exact`: results against exact values that MPFR computed, special values,
// and the binary64 steps against the machine's.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/functions/exact_function.hpp"

namespace samebits {
namespace {

namespace real = numerics::real;
using real::exact_function;

struct golden {
  exact_function f;
  std::uint32_t operand;  ///< binary32 bits
  bool negative;
  std::uint64_t sig;  ///< 2^60 <= sig < 2^61, rounded to odd
  int exponent;
};
constexpr golden golden_values[] = {
#include "exact_functions_golden.inc"
};

std::uint64_t value(exact_function f, std::uint64_t x) {
  return real::with_function(f, [&]<exact_function F>() { return real::value_at<F>(x); });
}
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t wide(std::uint32_t x) { return bits(double{std::bit_cast<float>(x)}); }

void expect_code(const golden& g, std::uint64_t y, format_id to, const cast_rule& rule,
                 std::uint64_t dither) {
  const format_spec spec = spec_of(to);
  const auto expected =
      numerics::encode_scaled(spec, rule, g.negative, g.sig, g.exponent, dither).code;
  EXPECT_EQ(real::destination_code(spec, rule, y, dither), expected)
      << "function " << static_cast<int>(g.f) << " of " << std::hex << g.operand << " into "
      << name(to) << " " << name(rule.rounding) << " with " << dither;
}

/// The smallest 16 random bits with which the exact value is rounded away from zero; 2^16: none.
std::uint64_t first_away(const golden& g, format_id to) {
  const auto code = [&](std::uint64_t random) {
    return numerics::encode_scaled(spec_of(to), {rounding::stochastic}, g.negative, g.sig,
                                   g.exponent, random << 48)
        .code;
  };
  const std::uint64_t toward_zero = code(0);
  std::uint64_t low = 0, high = 0x10000;
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (code(middle) == toward_zero ? low : high) = middle;
  }
  return high;
}

TEST(ExactFunctions, RoundTheExactValueOnce) {
  for (const golden& g : golden_values) {
    const std::uint64_t y = value(g.f, wide(g.operand));
    for (const format_id to :
         {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3, format_id::e5m2}) {
      expect_code(g, y, to, {}, 0);
      expect_code(g, y, to, {rounding::nearest_even, overflow::saturate}, 0);
      if (to == format_id::fp32 || g.f >= exact_function::silu_gradient) continue;
      // The random bits from which on the result is rounded away, and those before.
      const std::uint64_t first = first_away(g, to);
      for (const std::uint64_t random :
           {std::uint64_t{0}, first - 1, first, std::uint64_t{0xFFFF}}) {
        if (random < 0x10000) expect_code(g, y, to, {rounding::stochastic}, random << 48);
      }
    }
  }
}

/// Expected results at +0, -0, +Inf, -Inf, as binary64 numbers.
struct special {
  exact_function f;
  double at_zero, at_minus_zero, at_inf, at_minus_inf;
};
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr special specials_of_functions[] = {
    {exact_function::exp, 1, 1, inf, 0},
    {exact_function::exp2, 1, 1, inf, 0},
    {exact_function::expm1, 0, -0.0, inf, -1},
    {exact_function::log, -inf, -inf, inf, nan},
    {exact_function::log2, -inf, -inf, inf, nan},
    {exact_function::log1p, 0, -0.0, inf, nan},
    {exact_function::tanh, 0, -0.0, 1, -1},
    {exact_function::erf, 0, -0.0, 1, -1},
    {exact_function::rsqrt, inf, -inf, 0, nan},
    {exact_function::reciprocal, inf, -inf, 0, -0.0},
    {exact_function::sigmoid, 0.5, 0.5, 1, 0},
    {exact_function::silu, 0, -0.0, inf, -0.0},
    {exact_function::gelu, 0, -0.0, inf, -0.0},
    {exact_function::gelu_tanh, 0, -0.0, inf, -0.0},
    {exact_function::softplus, 0x1.62e42fefa39efp-1, 0x1.62e42fefa39efp-1, inf, 0},
    {exact_function::silu_gradient, 0.5, 0.5, 1, -0.0},
    {exact_function::gelu_gradient, 0.5, 0.5, 1, -0.0},
    {exact_function::gelu_tanh_gradient, 0.5, 0.5, 1, -0.0},
};
static_assert(std::size(specials_of_functions) == real::exact_function_count);

void expect_bits(exact_function f, double x, double expected) {
  const std::uint64_t y = value(f, bits(x));
  EXPECT_EQ(y, std::isnan(expected) ? real::nan : bits(expected))
      << static_cast<int>(f) << " of " << x << " is " << std::bit_cast<double>(y);
}

TEST(ExactFunctions, SpecialValues) {
  for (const special& s : specials_of_functions) {
    expect_bits(s.f, 0.0, s.at_zero);
    expect_bits(s.f, -0.0, s.at_minus_zero);
    expect_bits(s.f, inf, s.at_inf);
    expect_bits(s.f, -inf, s.at_minus_inf);
    expect_bits(s.f, nan, nan);
    expect_bits(s.f, -nan, nan);
  }
  expect_bits(exact_function::log, -1, nan);
  expect_bits(exact_function::log2, -0x1p-149, nan);
  expect_bits(exact_function::log1p, -1, -inf);
  expect_bits(exact_function::log1p, -1.5, nan);
  expect_bits(exact_function::rsqrt, -2, nan);
}

TEST(ExactFunctions, FunctionsAndGradientsAreFound) {
  using enum function;
  const std::vector<function> all = {exp,     exp2, expm1, log,       log2,
                                     log1p,   tanh, erf,   rsqrt,     reciprocal,
                                     sigmoid, silu, gelu,  gelu_tanh, softplus};
  const std::vector<function> gradients = {silu, gelu, gelu_tanh};
  int at = 0;  // the order of exact_function
  for (const function f : all)
    EXPECT_EQ(real::find_exact(f, false), static_cast<exact_function>(at++)) << name(f);
  for (const function f : gradients)
    EXPECT_EQ(real::find_exact(f, true), static_cast<exact_function>(at++)) << name(f);
  EXPECT_EQ(at, real::exact_function_count);
  EXPECT_FALSE(real::find_exact(sin, false) || real::find_exact(exp, true));
}

TEST(ExactFunctions, ExactResultsAreExact) {
  for (int k = -126; k <= 127; ++k) {
    const double power = std::ldexp(1.0, k);
    expect_bits(exact_function::exp2, k, power);
    expect_bits(exact_function::log2, power, k);
    expect_bits(exact_function::reciprocal, power, 1 / power);
    if (k % 2 == 0) expect_bits(exact_function::rsqrt, power, std::ldexp(1.0, -k / 2));
  }
  expect_bits(exact_function::log, 1, 0);
}

/// Pseudo-random numbers whose products and sums stay far from the limits of binary64.
class numbers {
 public:
  double next() {
    const auto sig = static_cast<double>(random_() >> 11 | 1);
    const double x = std::ldexp(sig, static_cast<int>(random_() % 120u) - 60 - 52);
    return (random_() & 1) != 0 ? x : -x;
  }

 private:
  std::mt19937_64 random_{7};
};

TEST(Binary64Steps, AreThoseOfTheMachine) {
  numbers source;
  for (int i = 0; i < 20000; ++i) {
    const double a = source.next(), b = source.next();
    double c = source.next();
    // sums that cancel
    if (i % 4 == 1) c = -(a * b);
    if (i % 4 == 2) c = std::nextafter(-(a * b), i % 8 == 2 ? inf : -inf);
    const std::uint64_t x = bits(a), y = bits(b), z = bits(c);
    ASSERT_EQ(real::fma(x, y, z), bits(std::fma(a, b, c))) << a << " " << b << " " << c;
    ASSERT_EQ(real::add(x, y), bits(a + b));
    ASSERT_EQ(real::sub(x, y), bits(a - b));
    ASSERT_EQ(real::mul(x, y), bits(a * b));
    ASSERT_EQ(real::div(x, y), bits(a / b));
    ASSERT_EQ(real::sqrt(x & ~real::sign_bit), bits(std::sqrt(std::fabs(a))));
    ASSERT_EQ(real::lt(x, y), a < b);
    ASSERT_EQ(real::lt(x, x), false);
  }
}

TEST(Binary64Steps, Zeros) {
  for (const double a : {0.0, -0.0, 1.0, -1.0}) {
    for (const double b : {0.0, -0.0, 2.0, -2.0}) {
      EXPECT_EQ(real::lt(bits(a), bits(b)), a < b);
      EXPECT_EQ(real::add(bits(a), bits(b)), bits(a + b));
      EXPECT_EQ(real::mul(bits(a), bits(b)), bits(a * b));
      for (const double c : {0.0, -0.0, 2.0, -2.0, 0x1p-900}) {
        EXPECT_EQ(real::fma(bits(a), bits(b), bits(c)), bits(std::fma(a, b, c))) << a << b << c;
      }
    }
  }
}

TEST(Binary64Steps, ToOddShowsTheSideOfTheSum) {
  EXPECT_EQ(real::sum_to_odd(bits(1.0), bits(0x1p-80)), bits(0x1.0000000000001p0));
  EXPECT_EQ(real::sum_to_odd(bits(1.0), bits(-0x1p-80)), bits(0x1.fffffffffffffp-1));
  EXPECT_EQ(real::sum_to_odd(bits(-1.0), bits(0x1p-80)), bits(-0x1.fffffffffffffp-1));
  EXPECT_EQ(real::sum_to_odd(bits(-1.0), bits(-0x1p-80)), bits(-0x1.0000000000001p0));
  EXPECT_EQ(real::sum_to_odd(bits(1.0), bits(0.5)), bits(1.5));
  EXPECT_EQ(real::sum_to_odd(bits(0x1.0000000000001p0), bits(0x1p-80)), bits(0x1.0000000000001p0));
  EXPECT_EQ(real::sum_to_odd(bits(0x1.0000000000001p0), bits(-0x1p-80)), bits(0x1.0000000000001p0));
}

TEST(ExactGradients, AreOneProduct) {
  const auto product = [](double grad, double d) {
    return std::bit_cast<double>(real::gradient_product(bits(grad), bits(d)));
  };
  EXPECT_EQ(product(3, -0.125), -0.375);
  EXPECT_EQ(product(0x1.fffffep127, 1.125), 0x1.fffffep127 * 1.125);
  EXPECT_EQ(product(inf, -0.1), -inf);
  EXPECT_EQ(product(-inf, -0.1), inf);
  EXPECT_TRUE(std::signbit(product(-0.0, 1)));
  EXPECT_EQ(real::gradient_product(bits(inf), bits(-0.0)), real::nan);
  EXPECT_EQ(real::gradient_product(bits(nan), bits(1.0)), real::nan);
  EXPECT_EQ(real::gradient_product(bits(1.0), bits(nan)), real::nan);
}

TEST(ExactFunctions, AreConstantExpressions) {
  static_assert(real::value_at<exact_function::exp>(real::one) ==
                real::bits_of(0x1.5bf0a8b145769p1));
}

}  // namespace
}  // namespace samebits
