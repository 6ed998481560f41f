// Random bits of consecutive elements in lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/access.hpp"
#include "backends/simd/philox_lanes.hpp"
#include "numerics/random.hpp"
#include "samebits/rounding.hpp"

namespace samebits::simd {

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
    const auto per_block = static_cast<std::uint64_t>(numerics::fields_per_block(k));
    const std::uint64_t last_block = ~std::uint64_t{0} / per_block;
    const std::uint64_t lead = index % per_block;
    const std::uint64_t blocks =
        (lead + static_cast<std::uint64_t>(count) + per_block - 1) / per_block;
    for (std::uint64_t b = 0; b < blocks; b += philox_batch<Isa>) {
      philox_fill<Isa>(bytes + b * 16, keys, stream, index / per_block + b, last_block);
    }
    first_byte = static_cast<std::int64_t>(lead) * numerics::field_bits(k) / 8;
  }

  /// R of the drawn elements i, i + 1, ... at the top of each lane (numerics::align_random).
  template <class Width>
  SAMEBITS_INLINE typename Isa::word dither(Width field, std::int64_t i) const {
    const auto fields = load<Isa>(field, bytes + first_byte + i * (field / 8));
    const std::uint32_t keep = ~std::uint32_t{0} << (32 - k);
    return (fields << static_cast<std::uint32_t>(32 - field)) & typename Isa::word(keep);
  }
};

}  // namespace samebits::simd
