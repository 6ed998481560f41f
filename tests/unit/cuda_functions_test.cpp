// numerics/hardware/cuda_functions/: special operands, borders between a function's formulas, and
// sums over every 4099th operand. Expected results come from the program that
// support/cuda_functions.hpp describes.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "support/cuda_functions.hpp"
#include "support/function_sum.hpp"

namespace samebits::numerics::cuda_13_0 {
namespace {

struct known_results {
  std::uint32_t x;
  std::uint32_t results[9];  ///< in the order of support::cuda_functions
};

constexpr known_results known[] = {
    // expf exp2f expm1f logf log2f log1pf tanhf erff rsqrtf
    {0x7FFFFFFF,
     {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF,
      0x7FFFFFFF, 0x7FFFFFFF}},
    {0xFFC00001,
     {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF,
      0x7FFFFFFF, 0x7FFFFFFF}},
    {0x7F800000,
     {0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x3F800000,
      0x3F800000, 0x00000000}},
    {0xFF800000,
     {0x00000000, 0x00000000, 0xBF800000, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0xBF800000,
      0xBF800000, 0x7FFFFFFF}},
    {0x00000000,
     {0x3F800000, 0x3F800000, 0x00000000, 0xFF800000, 0xFF800000, 0x00000000, 0x00000000,
      0x00000000, 0x7F800000}},
    {0x80000000,
     {0x3F800000, 0x3F800000, 0x80000000, 0xFF800000, 0xFF800000, 0x80000000, 0x80000000,
      0x80000000, 0xFF800000}},
    {0x00000001,
     {0x3F800000, 0x3F800000, 0x00000001, 0xC2CE8ED0, 0xC3150000, 0x00000001, 0x00000001,
      0x00000001, 0x64B504F2}},
    {0x80000001,
     {0x3F800000, 0x3F800000, 0x80000001, 0x7FFFFFFF, 0x7FFFFFFF, 0x80000001, 0x80000001,
      0x80000001, 0x7FFFFFFF}},
    {0x3F800000,
     {0x402DF854, 0x40000000, 0x3FDBF0A9, 0x00000000, 0x00000000, 0x3F317218, 0x3F42F7D6,
      0x3F57BB3D, 0x3F800000}},
    {0xBF800000,
     {0x3EBC5AB3, 0x3F000000, 0xBF21D2A7, 0x7FFFFFFF, 0x7FFFFFFF, 0xFF800000, 0xBF42F7D6,
      0xBF57BB3D, 0x7FFFFFFF}},
    {0xBF800001,
     {0x3EBC5AB1, 0x3EFFFFFE, 0xBF21D2A8, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0xBF42F7D6,
      0xBF57BB3E, 0x7FFFFFFF}},
    {0x3F000000,
     {0x3FD3094C, 0x3FB504F3, 0x3F261299, 0xBF317218, 0xBF800000, 0x3ECF9920, 0x3EEC9AA0,
      0x3F053F7B, 0x3FB504F2}},
    {0x40490FDB,
     {0x41B92024, 0x410D331D, 0x41B12024, 0x3F928682, 0x3FD3643A, 0x3FB5E5F7, 0x3F7F0BB0,
      0x3F7FFF6B, 0x3F106EBA}},
    {0x3DCCCCCD,
     {0x3F8D763E, 0x3F892FDF, 0x3DD763DA, 0xC0135D8E, 0xC0549A78, 0x3DC331FC, 0x3DCC1EBD,
      0x3DE652F5, 0x404A62C2}},
    {0x42B17217,
     {0x7F7FFF84, 0x6BD340E9, 0x7F7FFF84, 0x408F895C, 0x40CF1458, 0x408FE52C, 0x3F800000,
      0x3F800000, 0x3DD96D28}},
    {0x42B17218,
     {0x7F800000, 0x6BD34132, 0x7F800000, 0x408F895C, 0x40CF1459, 0x408FE52D, 0x3F800000,
      0x3F800000, 0x3DD96D27}},
    {0xC2AEAC50,
     {0x007FFFE6, 0x13CABC2F, 0xBF800000, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0xBF800000,
      0xBF800000, 0x7FFFFFFF}},
    {0xC2CFF1B5,
     {0x00000000, 0x0B82803B, 0xBF800000, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0xBF800000,
      0xBF800000, 0x7FFFFFFF}},
    {0x3F19999A,
     {0x3FE93B31, 0x3FC20300, 0x3F527662, 0xBF02C577, 0xBF3CA9C6, 0x3EF0A452, 0x3F097C14,
      0x3F1A9650, 0x3FA53F4E}},
    {0x3F199999,
     {0x3FE93B30, 0x3FC202FF, 0x3F527660, 0xBF02C579, 0xBF3CA9C8, 0x3EF0A450, 0x3F097C15,
      0x3F1A9650, 0x3FA53F4F}},
    {0x41102CB4,
     {0x46000005, 0x4400F8D4, 0x45FFF808, 0x400CB32F, 0x404AFCB2, 0x40136F6D, 0x3F800000,
      0x3F800000, 0x3EAA9033}},
    {0x3F8060FE,
     {0x402E7C5A, 0x4000434D, 0x3FDCF8B4, 0x3B41B2A6, 0x3B8BB935, 0x3F31D304, 0x3F43491E,
      0x3F580B86, 0x3F7F9F39}},
    {0x3F8060FD,
     {0x402E7C59, 0x4000434C, 0x3FDCF8B1, 0x3B41B0A8, 0x3B8BB7C4, 0x3F31D303, 0x3F43491E,
      0x3F580B86, 0x3F7F9F3A}},
    {0x007FFFFF,
     {0x3F800000, 0x3F800000, 0x007FFFFF, 0xC2AEAC50, 0xC2FC0000, 0x007FFFFF, 0x007FFFFF,
      0x00906EB9, 0x5F000000}},
};

// The steps: 0, 1, -2^23; 2.5 and -0; 1 + 2^-24 rounded in two ways; NaN.
static_assert(ptx::from_int(0) == 0 && ptx::from_int(1) == 0x3F800000);
static_assert(ptx::from_int(-8388608) == 0xCB000000);
static_assert(ptx::nearest_whole(0x40200000) == 0x40000000 &&
              ptx::nearest_whole(0xBE800000) == 0x80000000);
static_assert(ptx::add(0x3F800001, 0x33800000) == 0x3F800002);
static_assert(ptx::add_rz(0x3F800001, 0x33800000) == 0x3F800001);
static_assert(ptx::fma(0x3F800001, 0x3F800000, 0x33800000, rounding::downward) == 0x3F800001);
static_assert(ptx::saturate(0x7FFFFFFF) == 0 && ptx::saturate(0x80000000) == 0);
static_assert(ptx::saturate(0x3F7FFFFF) == 0x3F7FFFFF && ptx::saturate(0x7F800000) == 0x3F800000);
static_assert(!ptx::lt(0x80000000, 0) && ptx::lt(0xBF800000, 0) && ptx::lt(0xC0000000, 0xBF800000));
static_assert(!ptx::lt(0x7FFFFFFF, 0x3F800000) && !ptx::lt(0x3F800000, 0x7FFFFFFF));
static_assert(ptx::copysign(0x80000000, 0x3F800000) == 0xBF800000 && ptx::neg(0) == 0x80000000);

// Operands whose results depend on the last bits of the highest coefficients.
static_assert(log(0x3F2F9664) == 0xBEC10B68 && log(0x3F2AEC5D) == 0xBECED42E);
static_assert(log(0x3F2ACDEC) == 0xBECF2F66 && log(0x3F2ABD30) == 0xBECF6192);
static_assert(log2(0x3FB01908) == 0x3EEBA3A5 && log2(0x3FA76296) == 0x3EC62872);
static_assert(log2(0x3F35DBEF) == 0xBEFC94C6 && log2(0x3F358771) == 0xBEFDEC45);
static_assert(log1p(0x3E2D3382) == 0x3E20053D && log1p(0x3E5BA6F5) == 0x3E46FFF8);
static_assert(log1p(0x3DDED145) == 0x3DD38275 && log1p(0x3D9BC76F) == 0x3D962384);

// At compile time, too.
static_assert(exp(0x3F800000) == 0x402DF854 && log(0x3F000000) == 0xBF317218);
static_assert(tanh(0xFF800000) == 0xBF800000 && erf(0x7F800001) == 0x7FFFFFFF);

TEST(CudaFunctions, ReturnKnownResults) {
  static_assert(std::size(support::cuda_functions) == std::size(known_results{}.results));
  for (const known_results& k : known) {
    for (std::size_t i = 0; i < std::size(k.results); ++i) {
      const support::summed_function& f = support::cuda_functions[i];
      EXPECT_EQ(f.model(k.x), k.results[i]) << f.name << " at " << std::hex << k.x;
    }
  }
}

TEST(CudaFunctions, HaveTheSumsOfTheComparedProgram) {
  for (const support::summed_function& f : support::cuda_functions) {
    EXPECT_EQ(support::function_sum(f.model, 4099), f.sum_4099) << f.name;
  }
}

/// Sums over 3F000000, 3F00000D, ... below 3FC00000: dense enough for every bit of a coefficient.
constexpr std::uint64_t sums_near_one[] = {
    0xE1116EB160152C19, 0x9484372A4C552309, 0x16DF3DEA7569C3C7,
    0x81A992EE6C941E7F, 0xA285BD7ACF296D49, 0xAADCBFBF1F748BEF,
    0xBB9E97EC35FC421D, 0x1412936E76438F10, 0x7297F1757F43FD8A,
};

TEST(CudaFunctions, HaveTheSumsOfTheComparedProgramNearOne) {
  static_assert(std::size(sums_near_one) == std::size(support::cuda_functions));
  for (std::size_t i = 0; i < std::size(sums_near_one); ++i) {
    const support::summed_function& f = support::cuda_functions[i];
    EXPECT_EQ(support::function_sum(f.model, 13, 0x3F000000, 0x3FC00000), sums_near_one[i])
        << f.name;
  }
}

}  // namespace
}  // namespace samebits::numerics::cuda_13_0
