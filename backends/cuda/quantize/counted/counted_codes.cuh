// Codes, nodes and counts of a patch of a quantization with statistics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/counted/counted_factors.cuh"
#include "numerics/bits/encode.hpp"

namespace samebits::cuda {

/// Codes, counts and node of a strip by the definition; `reciprocal` is the stored scale.
template <format_id From, format_id To>
__device__ __noinline__ void defined_strip_counted(const patch_task& t, const tile_factor& factor,
                                                   std::uint64_t row, std::uint32_t col,
                                                   element_counts& counts, uint2& codes,
                                                   sum_node& node) {
  sum_node nodes[strip];
  std::uint64_t packed_codes = 0;
#pragma unroll 1
  for (int i = 0; i < strip; ++i) {
    const std::uint32_t x =
        numerics::decode<std::uint32_t>(spec_of(From), load_element<From>(t, row, col + i));
    const std::uint32_t y = numerics::scaled<hardware>(t.scale.math, {0, factor.factor}, x);
    const auto cast = numerics::encode<std::uint32_t>(spec_of(To), t.cast, y, 0);
    const std::uint32_t restored =
        numerics::rescaled<hardware>(spec_of(To), cast.code, factor.reciprocal);
    count({x, y, cast.code, restored, cast.overflow}, counts);
    nodes[i] = leaf_of(x, restored);
    packed_codes |= std::uint64_t{cast.code} << (8 * i);
  }
  for (int n = strip; n > 1; n /= 2) {
    for (int i = 0; i < n / 2; ++i) nodes[i] = joined(nodes[2 * i], nodes[2 * i + 1]);
  }
  node = nodes[0];
  codes =
      make_uint2(static_cast<unsigned>(packed_codes), static_cast<unsigned>(packed_codes >> 32));
}

/// Codes, nodes and counts of a patch by the definition.
template <format_id From, format_id To, shape Shape, int Tile, int Lanes>
__device__ __noinline__ void defined_strips(const counted_launch& c, warp_place<Shape, Lanes> at,
                                            lane_factors<lane_tiles<Tile>::most> factors,
                                            patch_stage<From> stage, element_counts& counts) {
#pragma unroll 1
  for (int half = 0; half < halves; ++half) {
    if (at.row(c, half) >= c.t.rows) continue;
    sum_node of_pair[2], before;
#pragma unroll 1
    for (int k = 0; k < strips_of_half; ++k) {
      uint2 codes{};
      sum_node node;
      const int i = lane_tiles<Tile>::two(c) ? k / 2 ^ static_cast<int>(stage.turn() >> 1) : 0;
      const counted_factor& f = factors.of[half][i];
      defined_strip_counted<From, To>(c.t, {f.factor, f.stored}, at.row(c, half),
                                      at.col(c) + k * strip, counts, codes, node);
      stage.set_codes_in_order(half, k, codes);
      if (k % 2 == 0) {
        before = node;
      } else {
        of_pair[k / 2] = joined(before, node);
      }
    }
    stage.set_node(half, joined(of_pair[0], of_pair[1]));
  }
}

/// Codes, nodes and counts of a lane's finite strips. `inside`: whether the whole patch is.
/// `between`: what is done between the halves.
template <format_id From, format_id To, shape Shape, int Tile, int Lanes, class Between>
__device__ __forceinline__ void coded_strips(const counted_launch& c,
                                             const warp_place<Shape, Lanes>& at, bool inside,
                                             const lane_factors<lane_tiles<Tile>::most>& factors,
                                             const patch_stage<From>& stage, std::uint32_t most,
                                             strip_counts<From>& counts, const Between& between) {
  counts.most = lane_maxima<From, 1>::larger(counts.most, most);
  // Squares of large numbers need a closer look as well.
  const std::uint32_t all =
      From == format_id::bf16 && reaches<From>(most, numerics::exact_squares(From).most)
          ? 0x7FFF7FFFu
          : 0;
#pragma unroll
  for (int half = 0; half < halves; ++half) {
    strip_of<From> x[strips_of_half];
    uint2 codes[strips_of_half];
    double noise[strips_of_half], signals[strips_of_half];
    exact_sum exact;
    std::uint32_t small = all;
#pragma unroll
    for (int k = 0; k < strips_of_half; ++k) {
      x[k] = stage.load(half, k);
      const counted_factor& f = factors.of[half][lane_tiles<Tile>::most == 1 ? 0 : k / 2];
      noise[k] = coded<From, To>(x[k], f, codes[k]);
      if constexpr (is_half<From>) {
        exact.add<From>(x[k]);
      } else {
        signals[k] = any_signal_of<From>(x[k]);
      }
      small = max(small, f.small);
    }
    double signal = is_half<From> ? exact.sum() : joined_four(signals);
    counts.add(x, codes, small, most, inside || at.row(c, half) < c.t.rows, signal);
#pragma unroll
    for (int k = 0; k < strips_of_half; ++k) stage.set_codes(half, k, codes[k]);
    stage.set_node(half, {signal, joined_four(noise)});
    if (half == 0) between();
  }
}

}  // namespace samebits::cuda
