// numerics/hardware/function_units/: special operands, sums over every 4099th operand from the
// program that was compared with the cards, and the squarer's partial products one by one.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "numerics/hardware/function_units/rsqrt.hpp"
#include "numerics/hardware/function_units/sqrt.hpp"
#include "support/function_sum.hpp"
#include "support/function_units.hpp"

namespace samebits::numerics::hopper {
namespace {

constexpr std::uint32_t inf = 0x7F800000, nan = 0x7FFFFFFF;
constexpr std::uint32_t one = 0x3F800000, minus_zero = 0x80000000;

// The expected values are those of the measured tables.
static_assert(support::sum_of_rows(ex2_row, 64) == 0xEB4AA836C3E17806);
static_assert(support::sum_of_rows(lg2_row, 64) == 0xCED2A8D3B9BE1638);
static_assert(support::sum_of_rows(rcp_row, 128) == 0xD75473E093272CD1);
static_assert(support::sum_of_rows(rsqrt_even_row, 64) == 0x82BA86FBF650F402);
static_assert(support::sum_of_rows(rsqrt_odd_row, 64) == 0xBB8EF9138F48A8C8);
static_assert(support::sum_of_rows(sqrt_even_row, 64) == 0xE6CA5B675825033A);
static_assert(support::sum_of_rows(sqrt_odd_row, 64) == 0xC143FD606689AA1A);

/// The square of x / 2^bits in units of 2^-15, without the partial products of less weight.
std::uint32_t square_by_partial_products(std::uint32_t x, int bits) {
  std::uint32_t sum = 0;
  const auto bit = [&](int i) { return (x >> (bits - i)) & 1; };
  for (int i = 1; i <= bits; ++i) {
    if (2 * i <= 15) sum += bit(i) << (15 - 2 * i);
    for (int j = i + 1; j <= bits; ++j) {
      if (i + j - 1 <= 15) sum += (bit(i) & bit(j)) << (15 - (i + j - 1));
    }
  }
  return sum;
}

TEST(FunctionUnits, SquarerAddsThePartialProductsThatCount) {
  for (std::uint32_t x = 0; x < 1u << 17; ++x) {
    ASSERT_EQ(truncated_square(x), square_by_partial_products(x, 17)) << x;
  }
  for (std::uint32_t x = 0; x < 1u << 16; ++x) {  // rcp's fractions have 16 bits
    ASSERT_EQ(truncated_square(x << 1), square_by_partial_products(x, 16)) << x;
  }
}

/// Zeros, subnormals, 1 and its neighbours, -126 and 128 for ex2, the ends of rcp, Inf and NaN.
constexpr std::uint32_t special_magnitudes[] = {
    0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x3F000000, 0x3F7FFFFF, one,        one + 1,
    0x40490FDB, 0x42FC0000, 0x42FC0001, 0x42FFFFFF, 0x43000000, 0x43800000, 0x7E800000, 0x7E800001,
    0x7F000000, 0x7F7FFFFF, inf,        inf + 1,    0x7FC00000, nan};

/// Sums of the results at these operands and their opposites, in the order of support::unit_functions.
/// The formulas of docs/contract.md, section 11, written in binary64 gave those of the .ftz functions.
constexpr std::uint64_t special_sums[] = {
    0x5CFD09835275C9DB, 0x8EF5A590FFBB5F01, 0x6D6F2BDB3EA84297, 0x9EE8D470A05B834D,
    0xD9247B8D6094F2F6, 0x93BD86FE95BB6C86, 0xEC1543B3749ADE20, 0xAED0F3D18628D770,
    0xD7C1E32A81A8A6CE, 0x3D5075FE7ED0BDF6};

TEST(FunctionUnits, HaveTheirSumsAtSpecialOperands) {
  static_assert(std::size(support::unit_functions) == std::size(special_sums));
  for (std::size_t i = 0; i < std::size(special_sums); ++i) {
    const support::summed_function& f = support::unit_functions[i];
    std::uint64_t sum = 0;
    for (const std::uint32_t x : special_magnitudes) {
      for (const std::uint32_t y : {x, x | minus_zero}) {
        sum = sum * 0x9E3779B97F4A7C15u + f.model(y);
      }
    }
    EXPECT_EQ(sum, special_sums[i]) << f.name;
  }
}

TEST(FunctionUnits, HaveTheSumsOfTheComparedProgram) {
  for (const support::summed_function& f : support::unit_functions) {
    EXPECT_EQ(support::function_sum(f.model, 4099), f.sum_4099) << f.name;
  }
}

}  // namespace
}  // namespace samebits::numerics::hopper
