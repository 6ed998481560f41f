// Amax in SIMD lanes: the largest magnitude code of fp32, fp16 and bf16 elements.
//
// In these formats the order of the codes is the order of the magnitudes, so only the largest code
// is decoded. Tiles without NaN and Inf, nearly all tiles, need only a maximum.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/rule.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::simd {

/// The bits of a 16-bit or 32-bit code without its sign.
template <int Width>
inline constexpr std::uint32_t magnitude_bits_of = (std::uint32_t{1} << (Width - 1)) - 1;

/// Loads fewer elements than a vector holds, one per lane. The other lanes are filled with
/// `padding` bytes.
template <class Isa, int Width>
SAMEBITS_INLINE typename Isa::word load_tail(const std::byte* p, std::int64_t count, int padding) {
  std::byte copy[sizeof(typename Isa::word)];
  __builtin_memset(copy, padding, sizeof copy);
  __builtin_memcpy(copy, p, static_cast<std::size_t>(count) * (Width / 8));
  return load<Isa>(fixed_width<Width>{}, copy);
}

/// Loads codes of Width bits from element i of `count` on; lanes after the last element are 0.
template <class Isa, int Width>
SAMEBITS_INLINE typename Isa::word load_codes(const std::byte* codes, std::int64_t i,
                                              std::int64_t count) {
  const std::byte* const p = codes + i * (Width / 8);
  if (i + Isa::word::count <= count) [[likely]]
    return load<Isa>(fixed_width<Width>{}, p);
  return load_tail<Isa, Width>(p, count - i, 0);
}

/// The maximum of `maximum` and the magnitude codes of contiguous elements. Each code may go to any
/// lane.
template <class Isa, int Width>
SAMEBITS_INLINE typename Isa::word largest_magnitudes(typename Isa::word maximum,
                                                      const std::byte* p, std::int64_t count) {
  using word = typename Isa::word;
  constexpr std::int64_t bytes = Width / 8;
  const word keep = magnitude_bits_of<Width>;
  std::int64_t i = 0;
  if constexpr (Width == 16) {  // two codes a lane
    word pairs = 0u;
    for (; i + 2 * word::count <= count; i += 2 * word::count) {
      const word codes = load<Isa>(fixed_width<32>{}, p + i * bytes);
      pairs = Isa::max_halves(pairs, codes & word(magnitude_bits_of<16> * 0x10001u));
    }
    maximum = max_word(maximum, max_word(pairs & word(0xFFFFu), pairs >> 16u));
  }
  for (; i + word::count <= count; i += word::count) {
    maximum = max_word(maximum, load<Isa>(fixed_width<Width>{}, p + i * bytes) & keep);
  }
  if (i < count)
    maximum = max_word(maximum, load_tail<Isa, Width>(p + i * bytes, count - i, 0) & keep);
  return maximum;
}

/// Like largest_magnitudes(), for magnitude codes up to `limit` only, plus 1; 0 if there are none.
template <class Isa, int Width>
SAMEBITS_INLINE typename Isa::word largest_amax_code(typename Isa::word maximum, const std::byte* p,
                                                     std::int64_t count, std::uint32_t limit) {
  using word = typename Isa::word;
  constexpr std::int64_t bytes = Width / 8;
  for (std::int64_t i = 0; i < count; i += word::count) {
    const word codes = i + word::count <= count
                           ? load<Isa>(fixed_width<Width>{}, p + i * bytes)
                           : load_tail<Isa, Width>(p + i * bytes, count - i, 0xFF);  // NaN
    const word magnitude = codes & word(magnitude_bits_of<Width>);
    maximum = max_word(maximum, select(magnitude > word(limit), word(0u), magnitude + word(1u)));
  }
  return maximum;
}

/// The amax of elements whose largest magnitude code is `maximum`. If `maximum` is not a finite
/// number, visit(f) must call f(first element, count) for all elements.
template <class Isa, class Source, class Visit>
SAMEBITS_INLINE numerics::tile_amax amax_from(Source, nonfinite policy, std::uint32_t maximum,
                                              const Visit& visit) {
  constexpr int width = Source::spec().storage_bits;
  const format_spec from = Source::spec();
  const auto inf = static_cast<std::uint32_t>(numerics::inf_code(from));
  if (maximum > inf && policy == nonfinite::propagate) {
    return static_cast<numerics::tile_amax>(numerics::binary32::nan);
  }
  if (maximum > inf || (maximum == inf && policy == nonfinite::skip_nonfinite)) {
    const std::uint32_t limit = policy == nonfinite::skip_nonfinite ? inf - 1 : inf;
    typename Isa::word largest = 0u;
    visit([&](const std::byte* p, std::int64_t count) __attribute__((always_inline)) {
      largest = largest_amax_code<Isa, width>(largest, p, count, limit);
    });
    maximum = Isa::largest(largest);
    if (maximum == 0) return numerics::no_amax;
    --maximum;
  }
  return static_cast<numerics::tile_amax>(numerics::decode<std::uint32_t>(from, maximum));
}

}  // namespace samebits::simd
