// Fast values of the rule `exact`: a decided one rounds like the definition's result. The operands
// are the hardest ones of exact_functions_golden.inc and pseudo-random ones.
#include "numerics/functions/fast_values.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "numerics/functions/exact_function.hpp"

namespace samebits {
namespace {

namespace real = numerics::real;
using real::exact_function;

struct golden {
  exact_function f;
  std::uint32_t operand;  ///< binary32 bits
  bool negative;
  std::uint64_t sig;
  int exponent;
};
constexpr golden golden_values[] = {
#include "exact_functions_golden.inc"
};

std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t wide(std::uint32_t x) { return bits(double{std::bit_cast<float>(x)}); }

/// Calls use.operator()<F>() for every function with fast values.
template <class Use>
void for_each_function(const Use& use) {
  for (int i = 0; i < real::exact_function_count; ++i) {
    real::with_function(static_cast<exact_function>(i), [&]<exact_function F>() {
      if constexpr (real::has_fast_value(F)) use.template operator()<F>();
    });
  }
}

/// Whether both results round to 0 or to Inf in every destination.
bool are_beyond(double a, double b) {
  const double least = std::fmin(std::fabs(a), std::fabs(b));
  const double most = std::fmax(std::fabs(a), std::fabs(b));
  return std::signbit(a) == std::signbit(b) && (least >= 0x1p128 || most < 0x1p-150);
}

/// Whether the fast value is decided. If so, it lies between the same numbers of 25 bits as the
/// definition's result.
template <exact_function F>
bool check(std::uint64_t x) {
  const std::uint64_t fast = real::fast_value<F>(x);
  if (!real::is_fast_operand<F>(x) || !real::is_decided(fast)) return false;
  const std::uint64_t defined = real::value_at<F>(x);
  const bool same = fast >> 28 == defined >> 28 && (defined & 0xFFFFFFF) != 0;
  EXPECT_TRUE(same || are_beyond(std::bit_cast<double>(fast), std::bit_cast<double>(defined)))
      << "function " << static_cast<int>(F) << " of " << std::bit_cast<double>(x);
  return true;
}

TEST(FastValues, RoundLikeTheDefinition) {
  for_each_function([]<exact_function F>() {
    for (const golden& g : golden_values) {
      if (g.f == F) check<F>(wide(g.operand));
    }
    std::mt19937 random(1);
    for (int i = 0; i < 2000; ++i) check<F>(wide(static_cast<std::uint32_t>(random())));
  });
}

/// Operands between 2^-8 and 8 are decided: else every call would compute the definition.
TEST(FastValues, AreMostlyDecided) {
  for_each_function([]<exact_function F>() {
    std::mt19937 random(2);
    int decided = 0;
    constexpr bool positive = F == exact_function::log || F == exact_function::log2;
    for (int i = 0; i < 2000; ++i) {
      const std::uint32_t field = 127 - 8 + static_cast<std::uint32_t>(random() % 11u);
      const std::uint32_t sign = positive ? 0 : static_cast<std::uint32_t>(random()) & 0x80000000u;
      const std::uint32_t x = sign | field << 23 | (static_cast<std::uint32_t>(random()) >> 9);
      if (F != exact_function::log1p || std::bit_cast<float>(x) > -1)
        decided += check<F>(wide(x));
      else
        ++decided;
    }
    EXPECT_GT(decided, 1980) << static_cast<int>(F);
  });
}

TEST(FastValues, ServeNoSpecialOperands) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for_each_function([]<exact_function F>() {
    for (const double x : {0.0, -0.0, inf, -inf, nan, -nan}) {
      if (x == 0 && F == exact_function::softplus) continue;  // log(2) is not special
      EXPECT_FALSE(check<F>(bits(x))) << static_cast<int>(F) << " of " << x;
    }
  });
  EXPECT_FALSE(check<exact_function::log>(bits(-1.5)));
  EXPECT_FALSE(check<exact_function::log2>(bits(-0x1p-149)));
  EXPECT_FALSE(check<exact_function::log1p>(bits(-1.0)));
  EXPECT_FALSE(check<exact_function::log1p>(bits(-1.5)));
  EXPECT_FALSE(check<exact_function::exp>(bits(200.0)));
  EXPECT_FALSE(check<exact_function::gelu>(bits(-13.0)));
}

TEST(FastValues, AreDecidedAwayFromNumbersOf25Bits) {
  constexpr std::uint64_t number = real::bits_of(0x1.000001p0), margin = 1u << 17;
  static_assert(!real::is_decided(number));
  static_assert(!real::is_decided(number + margin));
  static_assert(!real::is_decided(number - margin));
  static_assert(real::is_decided(number + margin + 1));
  static_assert(real::is_decided(number - margin - 1));
  static_assert(!real::is_decided(real::bits_of(0x1.fffffffffffffp-1)));
}

}  // namespace
}  // namespace samebits
