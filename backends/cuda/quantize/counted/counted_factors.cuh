// The scales of tiles in a quantization with statistics, and what elements need of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/counted/counted_maxima.cuh"
#include "numerics/quantize/counted.hpp"

namespace samebits::cuda {

/// What the elements of a tile need of its scale; amax: the code of the largest magnitude.
template <format_id From, format_id To>
__device__ __forceinline__ counted_factor factor_of(const tile_scale& s, std::uint32_t amax) {
  std::uint32_t small = numerics::largest_vanishing(From, spec_of(To), s.stored);
  if constexpr (is_half<From>) {
    constexpr std::uint32_t reach = numerics::exact_sum_reach(From);
    // Beyond the reach of the largest the order of sums matters.
    small = max(max(small, numerics::exact_squares(From).least - 1), max(amax, reach) - reach);
    small *= 0x10001u;
  }
  return {s.factor, s.stored, small};
}

/// The scale of a tile from its maximum.
template <format_id From, format_id To>
__device__ __noinline__ tile_scale any_scale(const patch_task& t, std::uint32_t code, bool finite) {
  return numerics::scale_of<hardware>(spec_of(To), t.scale,
                                      tile_maximum{code, !finite, finite}.amax<From>());
}
/// Whether the lane stores a scale, of tiles of 2^Tile columns: for rows that of half lane % 2.
template <shape Shape, int Tile>
__device__ __forceinline__ bool stores_scale() {
  if (Shape == shape::rows) return (threadIdx.x & ((1u << (Tile - 5)) - 1)) < 2;
  return threadIdx.x == 0;
}

/// Where a lane stores scales of a patch.
struct scale_target {
  std::byte* at;
  bool stores;  ///< there; else, unless scales are plain, by store_scale()
};

/// What the lane's elements need of their tiles.
template <int Most>
struct lane_factors {
  counted_factor of[halves][Most];
};

/// Stores the scales of the lane's tiles, one by one.
template <format_id From, shape Shape, int Lanes, int Most>
__device__ __noinline__ void store_scales(const counted_launch& c, warp_place<Shape, Lanes> at,
                                          lane_factors<Most> f) {
  const patch_task& t = c.t;
  const bool two = t.tile_cols < 5;
  if ((threadIdx.x & ((1u << max(t.tile_cols - 5, 0)) - 1)) != 0) return;
#pragma unroll
  for (int half = 0; half < halves; ++half) {
    const std::uint64_t row = at.row(c, half);
    // Squares of 16 rows or more have both halves' rows.
    if (row >= t.rows || (row & ((1u << t.tile_rows) - 1)) != 0) continue;
#pragma unroll
    for (int i = 0; i < Most; ++i) {
      if (i != 0 && !two) continue;
      const unsigned from_left = two ? i ^ patch_stage<From>::turn() >> 1 : 0;
      store_scale(t, {f.of[half][i].stored, 0}, row >> t.tile_rows,
                  (at.col(c) + from_left * (lane_cols / 2)) >> t.tile_cols);
    }
  }
}

/// The factors of the lane's tiles, whose scales are stored. scale_of(code): of a tile whose
/// largest magnitude that is.
template <format_id From, format_id To, shape Shape, int Tile, int Lanes, class ScaleOf>
__device__ __forceinline__ lane_factors<lane_tiles<Tile>::most> factors_by(
    const counted_launch& c, const warp_place<Shape, Lanes>& at,
    const lane_maxima<From, lane_tiles<Tile>::most>& most, scale_target scales,
    const ScaleOf& scale_of) {
  using tiles = lane_tiles<Tile>;
  lane_factors<tiles::most> f;
#pragma unroll
  for (int half = 0; half < halves; ++half) {
#pragma unroll
    for (int i = 0; i < tiles::most; ++i) {
      if (Shape == shape::squares && half != 0) {
        f.of[half][i] = f.of[0][i];
      } else if (i != 0 && !tiles::two(c)) {
        f.of[half][i] = f.of[half][0];
      } else {
        const std::uint32_t code = most.code(half, i);
        f.of[half][i] = factor_of<From, To>(scale_of(code), code);
      }
    }
  }
  if (Tile != 0 && scales.stores) {
    // Of two neighbouring lanes each stores that of one half.
    const bool second = Shape == shape::rows && threadIdx.x % 2 != 0;
    *reinterpret_cast<std::uint32_t*>(scales.at) = f.of[second ? 1 : 0][0].stored;
  } else if (Tile == 0 || !c.plain_scales) {
    store_scales<From, Shape, Lanes>(c, at, f);
  }
  return f;
}

/// The same by numerics::scale_of().
template <format_id From, format_id To, shape Shape, int Tile, int Lanes>
__device__ __noinline__ lane_factors<lane_tiles<Tile>::most> any_factors(
    const counted_launch& c, warp_place<Shape, Lanes> at,
    lane_maxima<From, lane_tiles<Tile>::most> most, bool finite, scale_target scales) {
  return factors_by<From, To, Shape, Tile, Lanes>(c, at, most, scales, [&](std::uint32_t code) {
    return any_scale<From, To>(c.t, code, finite);
  });
}

}  // namespace samebits::cuda
