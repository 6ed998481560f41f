// Philox4x32 and field selection as arithmetic on whole numbers: products, quotients, remainders.
#include "oracle/philox.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <stdexcept>
#include <string>

namespace samebits::oracle {
namespace {

using boost::multiprecision::cpp_int;

constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;

struct halves {
  std::uint32_t high;
  std::uint32_t low;
};

halves split(std::uint64_t x) {
  return {static_cast<std::uint32_t>(x / two_to_32), static_cast<std::uint32_t>(x % two_to_32)};
}

int field_width(int k) {
  for (const int width : {8, 16, 32}) {
    if (k <= width) return width;
  }
  return 0;
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key, int rounds) {
  // InverseScales and Weyl constants: Random123, philox.h.
  constexpr std::uint64_t multiplier_0 = 0xD2511F53;
  constexpr std::uint64_t multiplier_1 = 0xCD9E8D57;
  constexpr std::uint64_t weyl_0 = 0x9E3779B9;
  constexpr std::uint64_t weyl_1 = 0xBB67AE85;

  for (std::uint64_t round = 0; round < static_cast<std::uint64_t>(rounds); ++round) {
    const std::uint32_t key_0 = split(key[0] + round * weyl_0).low;
    const std::uint32_t key_1 = split(key[1] + round * weyl_1).low;
    const halves from_0 = split(multiplier_0 * counter[0]);
    const halves from_2 = split(multiplier_1 * counter[2]);
    counter = {from_2.high ^ counter[1] ^ key_0, from_2.low, from_0.high ^ counter[3] ^ key_1,
               from_0.low};
  }
  return counter;
}

std::uint32_t random_word(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, int k) {
  if (k < 1 || k > 32) {
    throw std::invalid_argument("oracle::random_word: k is " + std::to_string(k) +
                                ", expected 1..32");
  }
  const int width = field_width(k);
  const std::uint64_t fields = 128u / static_cast<unsigned>(width);
  const halves block = split(index / fields);
  const halves stream_words = split(stream);
  const halves key = split(seed);
  const std::array<std::uint32_t, 4> words =
      philox4x32({block.low, block.high, stream_words.low, stream_words.high}, {key.low, key.high});

  // The block as one 128-bit number; its digits in base 2^width are the fields, lowest first.
  cpp_int digits = 0;
  for (int i = 3; i >= 0; --i) digits = digits * two_to_32 + words[static_cast<std::size_t>(i)];
  const cpp_int base = cpp_int(1) << width;
  for (std::uint64_t f = index % fields; f > 0; --f) digits /= base;
  const auto field = static_cast<std::uint64_t>(cpp_int(digits % base));
  return static_cast<std::uint32_t>(field / (std::uint64_t{1} << (width - k)));
}

std::uint64_t element_index(const random_stream& s, std::uint64_t row, std::uint64_t column,
                            std::uint64_t columns) {
  const cpp_int whole = cpp_int(s.offset) + cpp_int(row) * s.pitch.value_or(columns) + column;
  return static_cast<std::uint64_t>(cpp_int(whole % (cpp_int(1) << 64)));
}

}  // namespace samebits::oracle
