// Random bits against the oracle's Philox, over full 64-bit seeds, streams and indices. oracle.self has
// the published vectors.
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

/// Every K and every field of the blocks around the places where 64-bit numbers wrap.
TEST(RandomOracle, EveryWidthEveryField) {
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
  static_assert(random_word(1, 0, 0, 32) == 0xE3E80670);  // constants too
}

}  // namespace
}  // namespace samebits
