// Hashes of arrays against numbers worked by another program in integers without limit.
#include "samebits/hash.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "numerics/bits/hash.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace {

template <class Code>
std::uint64_t hash_of(const std::vector<Code>& codes, std::uint64_t largest, int threads = 1) {
  const code_array array{codes.data(), static_cast<std::int64_t>(codes.size()), sizeof(Code),
                         largest};
  std::uint64_t result = 1;
  hash_codes({&array, 1}, {&result, 1}, memory_space::host, {.threads = threads});
  return result;
}

TEST(Hash, KnownArrays) {
  EXPECT_EQ(hash_of<std::uint32_t>({0x3F800000, 0x40000000, 0xFFC12345, 0x80000000}, 0x7F800000),
            0xA84C75E97A10DDECu);
  EXPECT_EQ(hash_of<std::uint8_t>({0x00, 0x7F, 0xFF, 0x7E, 0xFE}, 0x7E), 0xE0DA4F53E910C62Eu);
  EXPECT_EQ(hash_of<std::uint16_t>({0x7C01, 0xFC00, 0x0001}, 0x7C00), 0x4AB13CCC5511B1C7u);
  const std::vector<std::uint64_t> wide = {~std::uint64_t{0}, 0x7FF0000000000001, 5};
  EXPECT_EQ(hash_of(wide, 0), 0xFDAB37F4DF0D7F9Fu);
  EXPECT_EQ(hash_of(wide, 0x7FF0000000000000), 0x8976008A0DB3038Au);
  EXPECT_EQ(hash_of<std::uint8_t>({}, 0), 0u);
}

TEST(Hash, DoesNotDependOnThreads) {
  std::vector<std::uint16_t> codes(100'003);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint16_t>(i * 40'503);
  }
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < codes.size(); ++i) sum += numerics::hash_term(codes[i], i);
  for (const int threads : {1, 2, 5}) EXPECT_EQ(hash_of(codes, 0, threads), sum);
}

TEST(Hash, RefusesWhatItCannotRead) {
  std::uint64_t result = 7;
  const auto refused = [&](const code_array& array) {
    EXPECT_THROW(hash_codes({&array, 1}, {&result, 1}, memory_space::host), invalid_argument);
    EXPECT_EQ(result, 7u);
  };
  alignas(8) const std::array<std::uint8_t, 16> data{};
  refused({data.data(), 1, 3, 0});
  refused({data.data(), -1, 1, 0});
  refused({nullptr, 1, 1, 0});
  refused({data.data() + 1, 1, 2, 0});
  const code_array array{data.data(), 1, 1, 0};
  EXPECT_THROW(hash_codes({&array, 1}, {}, memory_space::host), invalid_argument);
  EXPECT_THROW(
      hash_codes({&array, 1}, {static_cast<std::uint64_t*>(nullptr), 1}, memory_space::host),
      invalid_argument);
}

}  // namespace
}  // namespace samebits
