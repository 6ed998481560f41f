// numerics::binary32 against the processor's own multiplication and division.
#include "numerics/arithmetic/binary32.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "backends/self_test/build_flags.hpp"
#include "numerics/arithmetic/by_definition.hpp"
#include "support/effort.hpp"

namespace samebits::numerics {
namespace {

// volatile: computed by the processor when the test runs, not by the compiler.
std::uint32_t canonical(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return binary32::is_nan(bits) ? binary32::nan : bits;
}
std::uint32_t hardware_product(std::uint32_t a, std::uint32_t b) {
  volatile float x = std::bit_cast<float>(a);
  volatile float y = std::bit_cast<float>(b);
  const float product = x * y;
  return canonical(product);
}
std::uint32_t hardware_quotient(std::uint32_t a, std::uint32_t b) {
  volatile float x = std::bit_cast<float>(a);
  volatile float y = std::bit_cast<float>(b);
  const float quotient = x / y;
  return canonical(quotient);
}
std::uint32_t hardware_sum(std::uint32_t a, std::uint32_t b) {
  volatile float x = std::bit_cast<float>(a);
  volatile float y = std::bit_cast<float>(b);
  const float sum = x + y;
  return canonical(sum);
}

void expect_equal(std::uint32_t a, std::uint32_t b) {
  ASSERT_EQ(binary32::multiply(a, b), hardware_product(a, b)) << std::hex << a << " * " << b;
  ASSERT_EQ(binary32::divide(a, b), hardware_quotient(a, b)) << std::hex << a << " / " << b;
  ASSERT_EQ(binary32::add(a, b), hardware_sum(a, b)) << std::hex << a << " + " << b;
}

TEST(Binary32, PolicyByDefinitionIsTheSameOperations) {
  const std::uint32_t six = 0x40C00000u, two = 0x40000000u;
  EXPECT_EQ(by_definition::product(six, two), 0x41400000u);   // 12
  EXPECT_EQ(by_definition::quotient(six, two), 0x40400000u);  // 3
  EXPECT_EQ(by_definition::sum(six, two), 0x41000000u);       // 8
  const std::uint64_t squares =
      by_definition::add_partial_sums(by_definition::square(six), by_definition::square(two));
  EXPECT_EQ(squares, std::bit_cast<std::uint64_t>(40.0));
  EXPECT_EQ(by_definition::no_partial_sum(), 0u);
  EXPECT_EQ(by_definition::bits(by_definition::from_bits(squares)), squares);
}

TEST(Binary32, NamedNumbers) {
  EXPECT_EQ(std::bit_cast<float>(binary32::max_finite), std::numeric_limits<float>::max());
  EXPECT_EQ(std::bit_cast<float>(binary32::min_normal), std::numeric_limits<float>::min());
  EXPECT_EQ(std::bit_cast<float>(binary32::inf), std::numeric_limits<float>::infinity());
}

TEST(Binary32, AmaxBitsAreMagnitudesAndOneNan) {
  EXPECT_EQ(binary32::amax_bits(0x80000000u), 0u);
  EXPECT_EQ(binary32::amax_bits(0xBF800000u), 0x3F800000u);
  EXPECT_EQ(binary32::amax_bits(0xFF800000u), binary32::inf);
  EXPECT_EQ(binary32::amax_bits(0x7F800001u), binary32::nan);
  EXPECT_EQ(binary32::amax_bits(0xFFC00000u), binary32::nan);
}

std::vector<std::uint32_t> edges() {
  std::vector<std::uint32_t> all;
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    for (std::uint32_t field = 0; field < 256; ++field) {
      for (const std::uint32_t mantissa :
           {0u, 1u, 2u, 0x400000u, 0x5A5A5Au, 0x7FFFFEu, 0x7FFFFFu}) {
        all.push_back(sign | field << 23 | mantissa);
      }
    }
    for (int bit = 0; bit < 23; ++bit) {  // subnormals of every length
      all.push_back(sign | 1u << bit);
      all.push_back(sign | ((2u << bit) - 1));
    }
  }
  return all;
}

TEST(Binary32, EdgesTimesEdges) {
  const auto all = edges();
  for (const std::uint32_t a : all) {
    for (const std::uint32_t b : all) {
      expect_equal(a, b);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Binary32, RandomBits) {
  std::mt19937 random(20);
  for (std::uint64_t i = 0; i < 4'000'000 / support::effort_divisor; ++i) {
    const auto a = static_cast<std::uint32_t>(random());
    const auto b = static_cast<std::uint32_t>(random());
    expect_equal(a, b);
    // Close together, so that products and quotients are neither zero nor infinite.
    expect_equal((a & 0x807FFFFFu) | 0x3F800000u, (b & 0x807FFFFFu) | 0x3F800000u);
    // Products and quotients among the subnormals.
    expect_equal((a & 0x81FFFFFFu) | 0x1E000000u, (b & 0x81FFFFFFu) | 0x1E000000u);
    expect_equal((a & 0x81FFFFFFu) | 0x08000000u, (b & 0x81FFFFFFu) | 0x48000000u);
    if (HasFatalFailure()) return;
  }
}

static_assert(binary32::divide(binary32::one, 0x40400000u) == 0x3EAAAAABu);  // 1 / 3
static_assert(binary32::multiply(0x3F800001u, 0x3F800001u) == 0x3F800002u);
static_assert(binary32::divide(binary32::one, 0u) == binary32::inf);
static_assert(binary32::divide(0u, 0u) == binary32::nan);

}  // namespace
}  // namespace samebits::numerics
