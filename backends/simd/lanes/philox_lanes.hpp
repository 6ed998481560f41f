// Philox in SIMD lanes: computes many blocks at once and stores them in the order of their fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/bits/random.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

/// Number of sets of Isa::philox_blocks that are computed together. The rounds of one set depend on
/// each other, and a processor's out-of-order window does not reach the next set.
inline constexpr int philox_sets = 4;

/// Number of blocks that philox_fill() writes.
template <class Isa>
inline constexpr std::uint64_t philox_batch = std::uint64_t{philox_sets} * Isa::philox_blocks;

/// Writes philox_batch blocks with the numbers first, first + 1, ... (each & number_mask), 16 bytes
/// each. Words are stored little-endian. The bytes are therefore the 8-, 16- or 32-bit fields of
/// contract §3 in field order.
///
/// Only the low word of the counter differs between blocks. Half of the products of rounds 1 and 2
/// are therefore computed once, as scalars.
template <class Isa>
SAMEBITS_INLINE void philox_fill(std::byte* out, const numerics::philox_keys& keys,
                                 std::uint64_t stream, std::uint64_t first,
                                 std::uint64_t number_mask) {
  using wide = typename Isa::wide;
  const std::uint64_t last = first + philox_batch<Isa> - 1;
  if ((first ^ last) >> 32 != 0) [[unlikely]] {  // a carry out of the low word
    for (std::uint64_t b = 0; b < philox_batch<Isa>; ++b) {
      const auto block = numerics::philox4x32_10(keys, stream, (first + b) & number_mask);
      __builtin_memcpy(out + b * sizeof block, &block, sizeof block);
    }
    return;
  }
  const wide m0 = Isa::broadcast64(numerics::philox::multiplier0);
  const wide m1 = Isa::broadcast64(numerics::philox::multiplier1);
  // Common to all blocks: the second product of round 1 and the first product of round 2.
  const std::uint64_t second = (stream & 0xFFFFFFFFu) * numerics::philox::multiplier1;
  const std::uint64_t c0_then = (second >> 32) ^ ((first & number_mask) >> 32) ^ keys.key0[0];
  const std::uint64_t third = c0_then * numerics::philox::multiplier0;

  wide c0[philox_sets], c1[philox_sets], c2[philox_sets], c3[philox_sets];
#pragma GCC unroll 4
  for (int s = 0; s < philox_sets; ++s) {
    const auto number = first + static_cast<std::uint64_t>(s * Isa::philox_blocks);
    const wide p0 = Isa::multiply_low_halves(Isa::block_numbers(number, number_mask), m0);
    const wide c = Isa::xor2(Isa::high_half(p0), Isa::broadcast64((stream >> 32) ^ keys.key1[0]));
    const wide p1 = Isa::multiply_low_halves(c, m1);
    c0[s] = Isa::xor2(Isa::high_half(p1), Isa::broadcast64((second & 0xFFFFFFFFu) ^ keys.key0[1]));
    c1[s] = p1;
    c2[s] = Isa::xor2(p0, Isa::broadcast64((third >> 32) ^ keys.key1[1]));
    c3[s] = Isa::broadcast64(third);
  }
#pragma GCC unroll 10
  for (int round = 2; round < numerics::philox::rounds; ++round) {
    const wide k0 = Isa::broadcast64(keys.key0[round]);
    const wide k1 = Isa::broadcast64(keys.key1[round]);
#pragma GCC unroll 4
    for (int s = 0; s < philox_sets; ++s) {
      const wide p0 = Isa::multiply_low_halves(c0[s], m0);
      const wide p1 = Isa::multiply_low_halves(c2[s], m1);
      if (round == numerics::philox::rounds - 1) {
        Isa::store_blocks(out + s * Isa::philox_blocks * 16, Isa::swap_and_xor_low(p1, c1[s], k0),
                          Isa::swap_and_xor_low(p0, c3[s], k1));
      } else {
        c0[s] = Isa::xor3(Isa::high_half(p1), c1[s], k0);
        c1[s] = p1;
        c2[s] = Isa::xor3(Isa::high_half(p0), c3[s], k1);
        c3[s] = p0;
      }
    }
  }
}

}  // namespace samebits::simd
