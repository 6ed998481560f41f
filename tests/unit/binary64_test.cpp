// numerics::binary64 against the processor's own operations.
#include "numerics/arithmetic/binary64.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "support/effort.hpp"

namespace samebits::numerics {
namespace {

std::uint64_t canonical(double x) {
  return std::isnan(x) ? binary64::nan : std::bit_cast<std::uint64_t>(x);
}

// volatile: computed by the processor when the test runs, not by the compiler.
void expect_equal(std::uint64_t a, std::uint64_t b) {
  volatile double x = std::bit_cast<double>(a);
  volatile double y = std::bit_cast<double>(b);
  ASSERT_EQ(binary64::multiply(a, b), canonical(x * y)) << std::hex << a << " * " << b;
  ASSERT_EQ(binary64::divide(a, b), canonical(x / y)) << std::hex << a << " / " << b;
  ASSERT_EQ(binary64::add(a, b), canonical(x + y)) << std::hex << a << " + " << b;
  if (a >= b && a != binary64::inf) {
    ASSERT_EQ(binary64::subtract(a, b), canonical(x - y)) << std::hex << a << " - " << b;
  }
}

void expect_root(std::uint64_t a) {
  volatile double x = std::bit_cast<double>(a);
  ASSERT_EQ(binary64::square_root(a), canonical(std::sqrt(x))) << std::hex << a;
}

void expect_narrowed(std::uint64_t a) {
  volatile double x = std::bit_cast<double>(a);
  ASSERT_EQ(binary64::narrow(a), std::bit_cast<std::uint32_t>(static_cast<float>(x)))
      << std::hex << a;
}

/// Numbers >= 0 of every magnitude, Inf among them.
std::vector<std::uint64_t> edges() {
  std::vector<std::uint64_t> all = {0, binary64::inf};
  for (std::uint64_t field = 0; field < 2047; field += field < 4 || field > 2040 ? 1 : 37) {
    for (const std::uint64_t mantissa :
         {0x0ull, 0x1ull, 0x8000000000000ull, 0x5A5A5A5A5A5A5ull, 0xFFFFFFFFFFFFFull}) {
      all.push_back(field << 52 | mantissa);
    }
  }
  for (int bit = 0; bit < 52; ++bit) all.push_back(std::uint64_t{1} << bit);
  return all;
}

TEST(Binary64, Edges) {
  for (const std::uint64_t a : edges()) {
    expect_narrowed(a);
    expect_root(a);
    for (const std::uint64_t b : edges()) expect_equal(a, b);
  }
}

TEST(Binary64, RandomBits) {
  std::mt19937_64 generator(1);
  for (std::uint64_t i = 0; i < 2'000'000 / support::effort_divisor; ++i) {
    expect_equal(generator() % binary64::inf, generator() % binary64::inf);
    // Quotients and products near one: no exponent hides a wrong significand.
    constexpr std::uint64_t mantissa = 0xFFFFFFFFFFFFFull;
    expect_equal(binary64::one | (generator() & mantissa),
                 binary64::one | (generator() & mantissa));
    // Sums whose lesser term is cut off, with long runs of equal bits for ties.
    const std::uint64_t runs = std::uint64_t{0} - (std::uint64_t{1} << generator() % 52);
    expect_equal(
        binary64::one | (generator() & mantissa),
        ((std::uint64_t{1023} - generator() % 66) << 52) | (generator() & mantissa & runs));
    // Sums whose terms overlap by any number of bits, ties and near-ties among them.
    const std::uint64_t exponent = generator() % 1980;
    const std::uint64_t tie = std::uint64_t{1} << generator() % 52;
    expect_equal((exponent << 52) + (generator() & mantissa),
                 ((exponent + generator() % 60) << 52) + (generator() & (mantissa - (tie - 1))));
    // Binary32's range, ties of its last bit among them.
    const std::uint64_t near = (std::uint64_t{870} + generator() % 300) << 52;
    expect_narrowed(near | (generator() & mantissa));
    expect_narrowed(near | (generator() & mantissa & ~std::uint64_t{0x0FFFFFFF}));
  }
}

TEST(Binary64, Roots) {
  std::mt19937_64 generator(3);
  for (std::uint64_t i = 0; i < 500'000 / support::effort_divisor; ++i) {
    expect_root(generator() % binary64::inf);
    // Squares of numbers of 27 bits are exact; beside them lie the roots nearest to a grid point.
    volatile double root = static_cast<double>(generator() >> 37);
    const auto square = std::bit_cast<std::uint64_t>(root * root);
    for (const std::uint64_t a : {square, square - 1, square + 1}) expect_root(a % binary64::inf);
  }
}

TEST(Binary64, PowersAreProductsFromTheLowestBitUp) {
  std::mt19937_64 generator(4);
  for (int i = 0; i < 10'000; ++i) {
    volatile double base = 1 - static_cast<double>(generator() >> 40) * 0x1p-26;
    const std::uint64_t exponent = generator() >> (generator() % 62);
    volatile double power = 1;
    volatile double square = base;
    for (int bit = 0; bit < 64; ++bit) {
      if ((exponent >> bit) % 2 == 1) power = power * square;
      square = square * square;
    }
    ASSERT_EQ(binary64::power(std::bit_cast<std::uint64_t>(base), exponent),
              std::bit_cast<std::uint64_t>(power))
        << base << " " << exponent;
  }
  EXPECT_EQ(binary64::power(binary64::two, 0), binary64::one);
  EXPECT_EQ(binary64::power(binary64::two, 10), 0x4090000000000000u);
}

TEST(Binary64, WidenIsExact) {
  std::mt19937 generator(2);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto a = static_cast<std::uint32_t>(generator() % 0x7F800001u);
    const double x = std::bit_cast<float>(a);
    ASSERT_EQ(binary64::widen(a), std::bit_cast<std::uint64_t>(x));
    ASSERT_EQ(binary64::narrow(binary64::widen(a)), a);
  }
}

}  // namespace
}  // namespace samebits::numerics
