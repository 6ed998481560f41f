// numerics/hardware/cuda_functions/: special operands, borders between a function's formulas, and
// sums over every 4099th operand. Expected results come from the programs that
// support/cuda_functions.hpp describes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "numerics/hardware/cuda_functions/fast_divide.hpp"
#include "numerics/hardware/cuda_functions/pow.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "support/cuda_functions.hpp"
#include "support/function_sum.hpp"

namespace samebits::numerics::cuda_13_0 {
namespace {

/// NaN, Inf, zeros, the least and largest numbers, and both sides of borders between formulas.
constexpr std::uint32_t special_operands[] = {
    0x7FFFFFFF, 0xFFC00001, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000, 0x00000001,
    0x80000001, 0x3F800000, 0xBF800000, 0xBF800001, 0x3F000000, 0x40490FDB, 0x3DCCCCCD,
    0x42B17217, 0x42B17218, 0xC2AEAC50, 0xC2CFF1B5, 0x3F19999A, 0x3F199999, 0x41102CB4,
    0x3F8060FE, 0x3F8060FD, 0x007FFFFF, 0x47CE4780, 0x47CE477F, 0xC7CE4781, 0x7F7FFFFF,
    0x4B800001, 0xD0000123, 0x4120E148, 0x4120E149, 0xC0800000, 0x3F490FDB};

/// Sums of the results at special_operands, in the order of support::cuda_functions.
constexpr std::uint64_t special_sums[] = {
    0x5C97ED0D0A3D2D9B, 0x491C5EAC98822162, 0xA6DB395839456D76, 0x69E333B21775C392,
    0xD5ACF6355F219830, 0x7424B9D930ED4A9B, 0x0D6F53954945A5F9, 0x908711BBA59D0135,
    0xCBD0C272EA1FE83F, 0x10132785396AC4D1, 0x0626BDEF884A26B1, 0x1B67E2AB9AC870F1,
    0x7B1FC374224CDBCF, 0x61E3BFFC95063700, 0xD4CBF427BD6651A3};

// The steps: 0, 1, -2^23; 2.5 and -0; 1 + 2^-24 rounded in two ways; NaN.
static_assert(ptx::from_int(0) == 0 && ptx::from_int(1) == 0x3F800000);
static_assert(ptx::from_int(0xFF800000) == 0xCB000000);
static_assert(ptx::nearest_whole(0x40200000) == 0x40000000 &&
              ptx::nearest_whole(0xBE800000) == 0x80000000);
static_assert(ptx::add(0x3F800001, 0x33800000) == 0x3F800002);
static_assert(ptx::add_rz(0x3F800001, 0x33800000) == 0x3F800001);
static_assert(ptx::fma(0x3F800001, 0x3F800000, 0x33800000, rounding::downward) == 0x3F800001);
static_assert(ptx::saturate(0x7FFFFFFF) == 0 && ptx::saturate(0x80000000) == 0);
static_assert(ptx::saturate(0x3F7FFFFF) == 0x3F7FFFFF && ptx::saturate(0x7F800000) == 0x3F800000);
static_assert(!ptx::lt(0x80000000, 0) && ptx::lt(0xBF800000, 0) && ptx::lt(0xC0000000, 0xBF800000));
static_assert(ptx::to_int(0xC0400000) == 0xFFFFFFFD && ptx::to_int(0x4EFFFFFF) == 0x7FFFFF80);
static_assert(ptx::to_int(0x4F000000) == 0 && ptx::to_int(0x7FFFFFFF) == 0);
static_assert(ptx::whole_toward_zero(0xBFC00000) == 0xBF800000);
static_assert(ptx::whole_down(0xBFC00000) == 0xC0000000 && ptx::sqrt(0x40800000) == 0x40000000);
static_assert(!ptx::lt(0x7FFFFFFF, 0x3F800000) && !ptx::lt(0x3F800000, 0x7FFFFFFF));
static_assert(ptx::copysign(0x80000000, 0x3F800000) == 0xBF800000 && ptx::neg(0) == 0x80000000);

// Operands whose results depend on the last bits of the highest coefficients.
static_assert(log(0x3F2F9664) == 0xBEC10B68 && log(0x3F2AEC5D) == 0xBECED42E);
static_assert(log(0x3F2ACDEC) == 0xBECF2F66 && log(0x3F2ABD30) == 0xBECF6192);
static_assert(log2(0x3FB01908) == 0x3EEBA3A5 && log2(0x3FA76296) == 0x3EC62872);
static_assert(log2(0x3F35DBEF) == 0xBEFC94C6 && log2(0x3F358771) == 0xBEFDEC45);
static_assert(log1p(0x3E2D3382) == 0x3E20053D && log1p(0x3E5BA6F5) == 0x3E46FFF8);
// 1 + x just below 3 and 3/2: rounded to nearest instead of toward zero, the exponent would change.
static_assert(log1p(0x3FFFFFFF) == 0x3F8C9F54 && log1p(0x3EFFFFFF) == 0x3ECF991F);
static_assert(log1p(0x3DDED145) == 0x3DD38275 && log1p(0x3D9BC76F) == 0x3D962384);

// At compile time, too.
static_assert(exp(0x3F800000) == 0x402DF854 && log(0x3F000000) == 0xBF317218);
static_assert(tanh(0xFF800000) == 0xBF800000 && erf(0x7F800001) == 0x7FFFFFFF);

TEST(CudaFunctions, HaveTheSumsOfTheComparedProgramAtSpecialOperands) {
  static_assert(std::size(support::cuda_functions) == std::size(special_sums));
  for (std::size_t i = 0; i < std::size(special_sums); ++i) {
    const support::summed_function& f = support::cuda_functions[i];
    std::uint64_t sum = 0;
    for (const std::uint32_t x : special_operands) sum = sum * 0x9E3779B97F4A7C15u + f.model(x);
    EXPECT_EQ(sum, special_sums[i]) << f.name;
  }
}

TEST(CudaFunctions, HaveTheSumsOfTheComparedProgram) {
  for (const support::summed_function& f : support::cuda_functions) {
    EXPECT_EQ(support::function_sum(f.model, 4099), f.sum_4099) << f.name;
  }
}

/// Sums over 3F000000, 3F00000D, ... below 3FC00000: dense enough for every bit of a coefficient.
constexpr std::uint64_t sums_near_one[] = {
    0xE1116EB160152C19, 0x9484372A4C552309, 0x16DF3DEA7569C3C7, 0x81A992EE6C941E7F,
    0xA285BD7ACF296D49, 0xAADCBFBF1F748BEF, 0xBB9E97EC35FC421D, 0x1412936E76438F10,
    0x7297F1757F43FD8A, 0xBB58F811977325B5, 0xAC5F84018283BB1E, 0x556EBF6DCC1ADA0D,
    0xE906BBB22D89D6FE, 0xE1129DC4F314AD06, 0x818AF76057A8EC7E,
};

TEST(CudaFunctions, HaveTheSumsOfTheComparedProgramNearOne) {
  static_assert(std::size(sums_near_one) == std::size(support::cuda_functions));
  for (std::size_t i = 0; i < std::size(sums_near_one); ++i) {
    const support::summed_function& f = support::cuda_functions[i];
    EXPECT_EQ(support::function_sum(f.model, 13, 0x3F000000, 0x3FC00000), sums_near_one[i])
        << f.name;
  }
}

/// Pairs of operands: powers of 1 and -1, of zeros and infinities, ends of the range.
constexpr std::uint32_t special_pairs[] = {
    0x3F800000, 0x7FC00000, 0x7FC00000, 0x00000000, 0xBF800000, 0x7F800000, 0xBF800000,
    0xFF800000, 0x00000000, 0xC0400000, 0x80000000, 0xC0400000, 0x80000000, 0x40400000,
    0x80000000, 0x40000000, 0xFF800000, 0x40400000, 0xFF800000, 0xC0400000, 0x7F800000,
    0xBF000000, 0xC0000000, 0x40400000, 0xC0000000, 0x3F000000, 0x40000000, 0x43000000,
    0x40000000, 0xC3150000, 0x00000001, 0x3F000000, 0x40490FDB, 0x402DF854, 0x3F7FFFFF,
    0x4B800001, 0xBF800000, 0x4B7FFFFF, 0xBF800000, 0x4B800001, 0x40000000, 0x7FC00000};

TEST(CudaFunctions, OfTwoOperandsHaveTheSumsOfTheComparedProgramAtSpecialPairs) {
  std::uint64_t powers = 0, quotients = 0;
  for (std::size_t i = 0; i < std::size(special_pairs); i += 2) {
    const std::uint32_t x = special_pairs[i], y = special_pairs[i + 1];
    powers = powers * 0x9E3779B97F4A7C15u + pow(x, y);
    quotients = quotients * 0x9E3779B97F4A7C15u + fast_divide(x, y);
  }
  EXPECT_EQ(powers, 0x80C890EF341DD9F0u);
  EXPECT_EQ(quotients, 0x0B793311B8ED976Cu);
}

/// A million pseudo-random pairs: one half any codes, the other half powers of numbers near 1.
TEST(CudaFunctions, OfTwoOperandsHaveTheSumsOfTheComparedProgram) {
  std::uint64_t powers = 0, quotients = 0, state = 1;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 32);
  };
  for (int i = 0; i < 1000000; ++i) {
    std::uint32_t x = next();
    std::uint32_t y = next();
    if (i % 2 != 0) {
      x = 0x3F000000 + x % 0x01000000;
      y = (y & 0x80000000) | (0x3C000000 + y % 0x06000000);
    }
    powers = powers * 0x9E3779B97F4A7C15u + pow(x, y);
    quotients = quotients * 0x9E3779B97F4A7C15u + fast_divide(x, y);
  }
  EXPECT_EQ(powers, 0x1C5D91070E669C59u);
  EXPECT_EQ(quotients, 0x6C72FE0A01018C72u);
}

// Operands at which the next larger constant gives another result.
TEST(CudaFunctions, UseTheirExactConstants) {
  EXPECT_EQ(expm1(std::uint32_t{0x4115B844}), 0x463500F1u);
  EXPECT_EQ(distance_from_even(std::uint32_t{0x4B7FFFFE}), 0u);  // 16777214
}

}  // namespace
}  // namespace samebits::numerics::cuda_13_0
