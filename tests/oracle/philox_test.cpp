// Tests of the oracle's random bits: Random123 known answers and the contract's index vectors.
#include "oracle/philox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <stdexcept>

namespace samebits::oracle {
namespace {

using block = std::array<std::uint32_t, 4>;

constexpr std::uint32_t ones = 0xFFFFFFFF;
constexpr block pi_counter{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344};
constexpr std::array<std::uint32_t, 2> pi_key{0xA4093822, 0x299F31D0};

// Random123, tests/kat_vectors.
TEST(OraclePhilox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (block{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (block{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT_EQ(philox4x32(pi_counter, pi_key),
            (block{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}, 7),
            (block{0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}, 7),
            (block{0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662}));
  EXPECT_EQ(philox4x32(pi_counter, pi_key, 7),
            (block{0x4DFCCABA, 0x190A87F0, 0xC47362BA, 0xB6B5242A}));
}

TEST(OraclePhilox, ContractVectors) {
  EXPECT_EQ(random_word(1, 0, 0, 32), 0xE3E80670u);
  EXPECT_EQ(random_word(1, 0, 1, 32), 0xE50A0EBCu);
  EXPECT_EQ(random_word(1, 0, 4, 32), 0xAC08141Bu);
  EXPECT_EQ(random_word(0x123456789ABCDEF0, 5, 3, 16), 0x70BBu);
  EXPECT_EQ(random_word(0x123456789ABCDEF0, 5, 8, 16), 0x3C2Cu);
  EXPECT_EQ(random_word((std::uint64_t{1} << 63) + 7, (std::uint64_t{1} << 40) + 1,
                        (std::uint64_t{1} << 34) + 5, 32),
            0x900FB54Du);
}

TEST(OraclePhilox, FieldsTileTheBlock) {
  const block words = philox4x32({2, 0, 9, 0}, {77, 0});
  for (std::uint64_t f = 0; f < 4; ++f) {
    EXPECT_EQ(random_word(77, 9, 8 + f, 32), words[f]);
    EXPECT_EQ(random_word(77, 9, 8 + f, 17), words[f] >> 15);
  }
  for (std::uint64_t f = 0; f < 8; ++f) {
    const std::uint32_t field = (words[f / 2] >> (16 * (f % 2))) & 0xFFFF;
    EXPECT_EQ(random_word(77, 9, 16 + f, 16), field);
    EXPECT_EQ(random_word(77, 9, 16 + f, 9), field >> 7);
  }
  for (std::uint64_t f = 0; f < 16; ++f) {
    const std::uint32_t field = (words[f / 4] >> (8 * (f % 4))) & 0xFF;
    EXPECT_EQ(random_word(77, 9, 32 + f, 8), field);
    EXPECT_EQ(random_word(77, 9, 32 + f, 1), field >> 7);
  }
}

TEST(OraclePhilox, CountOutOfRange) {
  EXPECT_THROW(random_word(1, 0, 0, 0), std::invalid_argument);
  EXPECT_THROW(random_word(1, 0, 0, 33), std::invalid_argument);
}

TEST(OraclePhilox, ElementIndex) {
  random_stream s;
  s.offset = 1000;
  EXPECT_EQ(element_index(s, 3, 2, 10), 1032u);
  s.pitch = 100;
  EXPECT_EQ(element_index(s, 3, 2, 10), 1302u);
  s.pitch = 0;
  EXPECT_EQ(element_index(s, 3, 2, 10), 1002u);
  s.offset = ~std::uint64_t{0};
  s.pitch = std::uint64_t{1} << 63;
  EXPECT_EQ(element_index(s, 2, 1, 10), 0u);
  EXPECT_EQ(element_index(s, 3, 5, 10), (std::uint64_t{1} << 63) + 4);
}

}  // namespace
}  // namespace samebits::oracle
