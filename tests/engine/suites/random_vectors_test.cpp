// Published vectors of the random bits: Random123's known answers and the contract's index vectors,
// through every door that the library has.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "numerics/bits/random.hpp"
#include "oracle/philox.hpp"
#include "samebits/convert.hpp"
#include "samebits/scalar.hpp"

namespace samebits {
namespace {

constexpr std::uint64_t pair(std::uint32_t low, std::uint32_t high) {
  return low | std::uint64_t{high} << 32;
}

struct known_answer {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> out;
};

// Random123, tests/kat_vectors, philox4x32 10.
constexpr std::array<known_answer, 3> kat{{
    {{0, 0, 0, 0}, {0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
    {{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF},
     {0xFFFFFFFF, 0xFFFFFFFF},
     {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
    {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
     {0xA4093822, 0x299F31D0},
     {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}},
}};

TEST(RandomVectors, KnownAnswers) {
  for (const known_answer& a : kat) {
    const numerics::philox_block block =
        numerics::philox4x32_10(pair(a.key[0], a.key[1]), pair(a.counter[2], a.counter[3]),
                                pair(a.counter[0], a.counter[1]));
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(block.word[i], a.out[i]);
  }
}

struct index_vector {
  std::uint64_t seed, stream, index;
  int k;
  std::uint32_t r;
};

// Contract §3.
constexpr std::array<index_vector, 6> vectors{{
    {1, 0, 0, 32, 0xE3E80670},
    {1, 0, 1, 32, 0xE50A0EBC},
    {1, 0, 4, 32, 0xAC08141B},
    {0x123456789ABCDEF0, 5, 3, 16, 0x70BB},
    {0x123456789ABCDEF0, 5, 8, 16, 0x3C2C},
    {(std::uint64_t{1} << 63) + 7, (std::uint64_t{1} << 40) + 1, (std::uint64_t{1} << 34) + 5, 32,
     0x900FB54D},
}};

TEST(RandomVectors, IndexVectors) {
  for (const index_vector& v : vectors) {
    EXPECT_EQ(random_word(v.seed, v.stream, v.index, v.k), v.r) << v.index;
  }
  static_assert(random_word(1, 0, 0, 32) == 0xE3E80670);  // constants too
  static_assert(random_word(0x123456789ABCDEF0, 5, 8, 16) == 0x3C2C);
}

/// The bits that an array call used, read off its results: an fp64 whose value is 1 + v * 2^-23
/// goes up into fp32 iff floor(v * 2^K) + R >= 2^K, so bisection over v finds R.
std::uint32_t bits_used_by_convert(const index_vector& v) {
  std::uint64_t low = 0;  // the least floor(v * 2^K) that goes up lies in (low, high]
  std::uint64_t high = std::uint64_t{1} << v.k;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    // 29 bits of v are below fp32's last one; K = 32 would need 3 more: see the subnormals below.
    const std::uint64_t code = 0x3FF0000000000000u | middle << (29 - v.k);
    std::uint32_t result = 0;
    convert(view_of_codes(format_id::fp64, &code, 1, 1),
            view_of_codes(format_id::fp32, &result, 1, 1),
            {.rounding = rounding::stochastic,
             .random = {v.seed, v.stream, v.index, std::nullopt, v.k}});
    (result == 0x3F800001 ? high : low) = middle;
  }
  return static_cast<std::uint32_t>((std::uint64_t{1} << v.k) - high);
}

TEST(RandomVectors, ArrayConversionUsesTheseBits) {
  for (const index_vector& v : vectors) {
    if (v.k > 29) continue;
    EXPECT_EQ(bits_used_by_convert(v), v.r) << v.index;
  }
}

/// The same for 32 bits: below e4m3's smallest value 2^-9 an fp64 has bits to spare.
TEST(RandomVectors, ArrayConversionUsesAll32Bits) {
  for (const index_vector& v : vectors) {
    if (v.k != 32) continue;
    // v = t * 2^-32 of 2^-9 for t just at and just below 2^32 - R.
    const std::uint64_t t = (std::uint64_t{1} << 32) - v.r;
    for (const std::uint64_t part : {t, t - 1}) {
      const double x = static_cast<double>(part) * 0x1p-41;
      std::uint8_t result = 0xFF;
      convert(view_of_codes(format_id::fp64, &x, 1, 1),
              view_of_codes(format_id::e4m3, &result, 1, 1),
              {.rounding = rounding::stochastic, .random = {v.seed, v.stream, v.index, {}, 32}});
      EXPECT_EQ(result, part == t ? 1 : 0) << v.index;
    }
  }
}

/// Every K and every field of the blocks around the places where 64-bit numbers wrap.
TEST(RandomVectors, EveryWidthEveryField) {
  constexpr std::uint64_t top = ~std::uint64_t{0};
  for (int k = 1; k <= 32; ++k) {
    for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{1} << 32,
                                     std::uint64_t{1} << 34, std::uint64_t{1} << 36, top}) {
      for (std::uint64_t i = 0; i < 128; ++i) {
        const std::uint64_t index = base + i - 64;
        ASSERT_EQ(random_word(base, top - i, index, k),
                  oracle::random_word(base, top - i, index, k))
            << index << ' ' << k;
      }
    }
  }
}

}  // namespace
}  // namespace samebits
