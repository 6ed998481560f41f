// Philox in lanes: many blocks at once, laid out in memory in the order of their fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/config.hpp"
#include "numerics/random.hpp"

namespace samebits::simd {

/// Sets of Isa::philox_blocks that are computed together: the rounds of one set wait for each
/// other, and processors do not look far enough ahead to find the next set by themselves.
inline constexpr int philox_sets = 4;

/// Blocks that philox_fill() writes at a time.
template <class Isa>
inline constexpr std::uint64_t philox_batch = std::uint64_t{philox_sets} * Isa::philox_blocks;

/// Writes philox_batch blocks first, first + 1, ... (each & number_mask), 16 bytes each. Words are
/// stored little-endian, so the bytes are the 8-, 16- or 32-bit fields of contract §3 in the order
/// of their numbers.
template <class Isa>
SAMEBITS_INLINE void philox_fill(std::byte* out, const numerics::philox_keys& keys,
                                 std::uint64_t stream, std::uint64_t first,
                                 std::uint64_t number_mask) {
  using wide = typename Isa::wide;
  const wide m0 = Isa::broadcast64(numerics::philox::multiplier0);
  const wide m1 = Isa::broadcast64(numerics::philox::multiplier1);
  wide c0[philox_sets], c1[philox_sets], c2[philox_sets], c3[philox_sets];
#pragma GCC unroll 4
  for (int s = 0; s < philox_sets; ++s) {
    c0[s] =
        Isa::block_numbers(first + static_cast<std::uint64_t>(s * Isa::philox_blocks), number_mask);
    c1[s] = Isa::high_half(c0[s]);
    c2[s] = Isa::broadcast64(stream & 0xFFFFFFFFu);
    c3[s] = Isa::broadcast64(stream >> 32);
  }
#pragma GCC unroll 10
  for (int round = 0; round < numerics::philox::rounds; ++round) {
    const wide k0 = Isa::broadcast64(keys.key0[round]);
    const wide k1 = Isa::broadcast64(keys.key1[round]);
#pragma GCC unroll 4
    for (int s = 0; s < philox_sets; ++s) {
      const wide p0 = Isa::multiply_low_halves(c0[s], m0);
      const wide p1 = Isa::multiply_low_halves(c2[s], m1);
      c0[s] = Isa::xor3(Isa::high_half(p1), c1[s], k0);
      c1[s] = p1;
      c2[s] = Isa::xor3(Isa::high_half(p0), c3[s], k1);
      c3[s] = p0;
    }
  }
#pragma GCC unroll 4
  for (int s = 0; s < philox_sets; ++s) {
    Isa::interleave(out + s * Isa::philox_blocks * 16, c0[s], c1[s], c2[s], c3[s]);
  }
}

}  // namespace samebits::simd
