// Random bits by Philox4x32-10. They depend only on (seed, stream, index, K).
//
// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// The constants of Philox4x32.
namespace philox {
inline constexpr std::uint32_t multiplier0 = 0xD2511F53u;
inline constexpr std::uint32_t multiplier1 = 0xCD9E8D57u;
inline constexpr std::uint32_t weyl0 = 0x9E3779B9u;  // golden ratio
inline constexpr std::uint32_t weyl1 = 0xBB67AE85u;  // sqrt(3) - 1
inline constexpr int rounds = 10;
}  // namespace philox

/// One Philox block: 128 random bits.
struct philox_block {
  std::uint32_t word[4];
};

/// The two key words of each round. They depend only on the seed.
struct philox_keys {
  std::uint32_t key0[philox::rounds];
  std::uint32_t key1[philox::rounds];
};

/// The keys of a seed: each round adds the Weyl constants to the previous keys.
SAMEBITS_INLINE constexpr philox_keys philox_keys_of(std::uint64_t seed) {
  philox_keys keys{};
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < philox::rounds; ++round) {
    keys.key0[round] = k0;
    keys.key1[round] = k1;
    k0 += philox::weyl0;
    k1 += philox::weyl1;
  }
  return keys;
}

/// One round: c becomes the four words after it. Word has 32 bits, Wide 64.
template <class Word, class Wide>
SAMEBITS_INLINE constexpr void philox_round(Word (&c)[4], const Word& key0, const Word& key1) {
  const Wide p0 = Wide(std::uint64_t{philox::multiplier0}) * static_cast<Wide>(c[0]);
  const Wide p1 = Wide(std::uint64_t{philox::multiplier1}) * static_cast<Wide>(c[2]);
  const Wide half(std::uint64_t{32});
  c[0] = static_cast<Word>(p1 >> half) ^ c[1] ^ key0;
  c[1] = static_cast<Word>(p1);
  c[2] = static_cast<Word>(p0 >> half) ^ c[3] ^ key1;
  c[3] = static_cast<Word>(p0);
}

/// Philox4x32-10 of the counter (block, stream) under the keys of a seed. Each 64-bit number enters
/// as two words, low word first.
SAMEBITS_INLINE constexpr philox_block philox4x32_10(const philox_keys& keys, std::uint64_t stream,
                                                     std::uint64_t block) {
  philox_block b = {{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                     static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
  for (int round = 0; round < philox::rounds; ++round) {
    philox_round<std::uint32_t, std::uint64_t>(b.word, keys.key0[round], keys.key1[round]);
  }
  return b;
}

SAMEBITS_INLINE constexpr philox_block philox4x32_10(std::uint64_t seed, std::uint64_t stream,
                                                     std::uint64_t block) {
  return philox4x32_10(philox_keys_of(seed), stream, block);
}

/// Width of the bit field of one element in a block: the smallest of 8, 16, 32 that holds K bits.
SAMEBITS_INLINE constexpr int field_bits(int k) { return k <= 8 ? 8 : k <= 16 ? 16 : 32; }

/// Number of elements that share one block.
SAMEBITS_INLINE constexpr int fields_per_block(int k) { return 128 / field_bits(k); }

/// The top K bits of field f of a block. Fields are counted upward from the low bits of word 0.
SAMEBITS_INLINE constexpr std::uint32_t field_of(const philox_block& b, int f, int k) {
  const int width = field_bits(k);
  const int position = f * width;
  const std::uint32_t word = b.word[position / 32] >> (position % 32);
  const std::uint32_t field = width == 32 ? word : word & ((1u << width) - 1);
  return field >> (width - k);
}

/// R: the K random bits of element `index` (contract §3); 1 <= K <= 32.
SAMEBITS_INLINE constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t stream,
                                                    std::uint64_t index, int k) {
  const auto per_block = static_cast<std::uint64_t>(fields_per_block(k));
  return field_of(philox4x32_10(seed, stream, index / per_block),
                  static_cast<int>(index % per_block), k);
}

/// Moves R to the top of a Word, where round_shift() expects it.
template <class Word>
SAMEBITS_INLINE constexpr Word align_random(std::uint32_t r, int k) {
  return static_cast<Word>(Word{r} << (static_cast<int>(sizeof(Word) * 8) - k));
}

}  // namespace samebits::numerics
