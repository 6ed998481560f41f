// Random bits against the oracle's Philox, over full 64-bit seeds, streams and indices.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cstdint>

#include "numerics/bits/random.hpp"
#include "oracle/philox.hpp"
#include "samebits/scalar.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace samebits {
namespace {

using namespace support;

rc::Gen<std::uint64_t> numbers() {
  return case_generator<std::uint64_t>(draw_number, [](std::uint64_t n) {
    return n == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{0, n & (n - 1)};
  });
}

TEST(RandomOracle, WordsAreTheOracles) {
  expect_holds("random_word", 100000, [] {
    const std::uint64_t seed = *numbers();
    const std::uint64_t stream = *numbers();
    const std::uint64_t index = *numbers();
    const int k = static_cast<int>(1 + *numbers() % 32);
    const std::uint32_t got = random_word(seed, stream, index, k);
    RC_ASSERT(got == oracle::random_word(seed, stream, index, k));
    RC_ASSERT(static_cast<std::uint64_t>(got) < std::uint64_t{1} << k);
  });
}

TEST(RandomOracle, BlocksAreTheOracles) {
  expect_holds("philox4x32_10", 20000, [] {
    const std::uint64_t seed = *numbers();
    const std::uint64_t stream = *numbers();
    const std::uint64_t block = *numbers();
    const auto low = [](std::uint64_t n) { return static_cast<std::uint32_t>(n); };
    const auto high = [](std::uint64_t n) { return static_cast<std::uint32_t>(n >> 32); };
    const std::array<std::uint32_t, 4> expected = oracle::philox4x32(
        {low(block), high(block), low(stream), high(stream)}, {low(seed), high(seed)});
    const numerics::philox_block got = numerics::philox4x32_10(seed, stream, block);
    for (std::size_t i = 0; i < 4; ++i) RC_ASSERT(got.word[i] == expected[i]);
  });
}

TEST(RandomOracle, FewerBitsAreTheTopOfMoreWithinOneFieldWidth) {
  expect_holds("K bits are the top of the field", 20000, [] {
    const std::uint64_t seed = *numbers();
    const std::uint64_t stream = *numbers();
    const std::uint64_t index = *numbers();
    for (int k = 1; k <= 32; ++k) {
      const int width = k <= 8 ? 8 : k <= 16 ? 16 : 32;
      RC_ASSERT(random_word(seed, stream, index, k) ==
                random_word(seed, stream, index, width) >> (width - k));
    }
  });
}

}  // namespace
}  // namespace samebits
