// Philox in lanes: many blocks at once, laid out in memory in the order of their fields.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/config.hpp"
#include "numerics/random.hpp"

namespace samebits::simd {

/// Writes the blocks first, first + 1, ... (each & number_mask) as Isa::philox_blocks * 16 bytes.
/// Words are stored little-endian, so the bytes are the 8-, 16- or 32-bit fields of contract §3 in
/// the order of their numbers.
template <class Isa>
SAMEBITS_INLINE void philox_blocks(std::byte* out, std::uint64_t seed, std::uint64_t stream,
                                   std::uint64_t first, std::uint64_t number_mask) {
  using wide = typename Isa::wide;
  const wide m0 = Isa::broadcast64(numerics::philox::multiplier0);
  const wide m1 = Isa::broadcast64(numerics::philox::multiplier1);
  wide c0 = Isa::block_numbers(first, number_mask);
  wide c1 = Isa::high_half(c0);
  wide c2 = Isa::broadcast64(stream & 0xFFFFFFFFu);
  wide c3 = Isa::broadcast64(stream >> 32);
  auto k0 = static_cast<std::uint32_t>(seed);
  auto k1 = static_cast<std::uint32_t>(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < numerics::philox::rounds; ++round) {
    const wide p0 = Isa::multiply_low_halves(c0, m0);
    const wide p1 = Isa::multiply_low_halves(c2, m1);
    c0 = Isa::xor3(Isa::high_half(p1), c1, Isa::broadcast64(k0));
    c1 = p1;
    c2 = Isa::xor3(Isa::high_half(p0), c3, Isa::broadcast64(k1));
    c3 = p0;
    k0 += numerics::philox::weyl0;
    k1 += numerics::philox::weyl1;
  }
  Isa::interleave(out, c0, c1, c2, c3);
}

}  // namespace samebits::simd
