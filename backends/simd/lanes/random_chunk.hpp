// Random bits of consecutive elements: random_chunk generates them into memory, random_reader loads
// them into SIMD lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/philox_lanes.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::simd {

/// A view of generated random bits for a kernel's loop. random_reader is a class of its own because
/// the compiler must assume that stores in the loop modify a random_chunk.
template <class Isa>
struct random_reader {
  const std::byte* fields;  ///< first byte of element 0's field
  typename Isa::word keep;  ///< mask of the top K bits of a lane

  /// R of the elements i, i + 1, ..., at the top of each lane (numerics::align_random).
  template <class Width>
  [[nodiscard]] SAMEBITS_INLINE typename Isa::word dither(Width width, std::int64_t i) const {
    const auto raw = load<Isa>(width, fields + i * (width / 8));
    return (raw << static_cast<std::uint32_t>(32 - width)) & keep;
  }
};

/// The random bits of up to Elements consecutive elements, as raw Philox fields in memory.
template <class Isa, std::int64_t Elements>
struct random_chunk {
  numerics::philox_keys keys;
  std::uint64_t stream;
  int k;
  // Space for the elements' fields, the unused fields at the start of the first block, and a full
  // last batch.
  alignas(64) std::byte bytes[Elements * 4 + 16 + philox_batch<Isa> * 16];
  std::int64_t first_byte = 0;

  SAMEBITS_INLINE explicit random_chunk(const random_stream& r)
      : keys(numerics::philox_keys_of(r.seed)), stream(r.stream), k(r.bits) {}

  /// Generates the random bits of the elements index, index + 1, ... Not inlined: its code is long
  /// and has many callers.
  [[gnu::noinline]] void fill(std::uint64_t index, std::int64_t count) {
    // A block has 1 << shift fields. Shifts replace divisions, which would take longer than the
    // rounds of a block.
    const int shift = k <= 8 ? 4 : k <= 16 ? 3 : 2;
    const std::uint64_t last_block = ~std::uint64_t{0} >> shift;
    const std::uint64_t lead = index & ((std::uint64_t{1} << shift) - 1);
    const std::uint64_t blocks =
        (lead + static_cast<std::uint64_t>(count) + (std::uint64_t{1} << shift) - 1) >> shift;
    for (std::uint64_t b = 0; b < blocks; b += philox_batch<Isa>) {
      philox_fill<Isa>(bytes + b * 16, keys, stream, (index >> shift) + b, last_block);
    }
    first_byte = static_cast<std::int64_t>(lead) * numerics::field_bits(k) / 8;
  }

  [[nodiscard]] SAMEBITS_INLINE random_reader<Isa> reader() const {
    return {bytes + first_byte, typename Isa::word(~std::uint32_t{0} << (32 - k))};
  }
  [[nodiscard]] SAMEBITS_INLINE int field_width() const { return numerics::field_bits(k); }
};

}  // namespace samebits::simd
