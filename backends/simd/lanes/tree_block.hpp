// The sum tree of one chunk (numerics/sums/sum_tree.hpp) from registers of partial sums.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/access.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

/// Number of elements whose squares are combined to one register of partial sums.
template <class Isa>
inline constexpr std::int64_t tree_block = std::int64_t{Isa::count} * Isa::count;

/// The root of the tree over `n` registers, which it overwrites: one register for each tree_block
/// of a chunk. Pads with zeros up to a multiple of Isa::count registers, for which there must be space.
template <class Isa>
SAMEBITS_INLINE double root_of_chunk(typename Isa::partial_sums* v, std::int64_t n) {
  using partial_sums = typename Isa::partial_sums;
  while (n > 1) {
    for (; n % Isa::count != 0; ++n) v[n] = Isa::zero();
    n /= Isa::count;
    for (std::int64_t i = 0; i < n; ++i) {
      v[i] = Isa::fold(
          v + i * Isa::count, [](partial_sums even, partial_sums odd)
                                  __attribute__((always_inline)) { return Isa::sum(even, odd); });
    }
  }
  double last[Isa::count] = {};
  if (n != 0) Isa::store(last, v[0]);
  for (int width = Isa::count / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) last[i] = last[2 * i] + last[2 * i + 1];
  }
  return last[0];
}

/// The sum of all lanes.
template <class Isa>
SAMEBITS_INLINE std::uint32_t sum_of_lanes(typename Isa::word x) {
  std::uint32_t lanes[Isa::word::count];
  store<Isa>(lanes, x);
  std::uint32_t sum = 0;
  for (const std::uint32_t n : lanes) sum += n;
  return sum;
}

}  // namespace samebits::simd
