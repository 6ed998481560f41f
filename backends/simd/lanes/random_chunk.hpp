// Random bits of consecutive elements in lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/philox_lanes.hpp"
#include "numerics/bits/random.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::simd {

/// Drawn random bits as a loop reads them: apart from the chunk, which stores might change as far
/// as a compiler can tell.
template <class Isa>
struct random_reader {
  const std::byte* fields;  ///< of element 0
  typename Isa::word keep;  ///< the top K bits of a lane

  /// R of the elements i, i + 1, ... at the top of each lane (numerics::align_random).
  template <class Width>
  [[nodiscard]] SAMEBITS_INLINE typename Isa::word dither(Width width, std::int64_t i) const {
    const auto raw = load<Isa>(width, fields + i * (width / 8));
    return (raw << static_cast<std::uint32_t>(32 - width)) & keep;
  }
};

/// The random bits of up to Elements consecutive elements: raw fields in memory, read back as
/// lanes.
template <class Isa, std::int64_t Elements>
struct random_chunk {
  numerics::philox_keys keys;
  std::uint64_t stream;
  int k;
  // The fields, those before the first element in its block, and whole fills.
  alignas(64) std::byte bytes[Elements * 4 + 16 + philox_batch<Isa> * 16];
  std::int64_t first_byte = 0;

  SAMEBITS_INLINE explicit random_chunk(const random_stream& r)
      : keys(numerics::philox_keys_of(r.seed)), stream(r.stream), k(r.bits) {}

  /// Draws for the elements index, index + 1, ... Not inlined: its text is long and has many
  /// callers.
  [[gnu::noinline]] void fill(std::uint64_t index, std::int64_t count) {
    // Fields of a block: 1 << shift. Divisions would take longer than the rounds of a block.
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
