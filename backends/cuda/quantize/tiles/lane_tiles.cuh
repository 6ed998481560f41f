// Lane tiles: quantizes 1 x 128 tiles whose elements a kernel has just computed, in the registers of
// 16 lanes of a warp with 8 neighbours each. The steps are those of row_quantize.cuh.
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"
#include "backends/cuda/quantize/tiles/vector_cast.cuh"

namespace samebits::cuda {

inline constexpr int lane_tile = 128;  ///< elements

/// The maximum over the lanes of a tile.
__device__ __forceinline__ std::uint32_t of_lane_tile(std::uint32_t mine) {
#pragma unroll
  for (int apart = lane_tile / vector_length / 2; apart > 0; apart /= 2) {
    mine = max(mine, __shfl_xor_sync(all_lanes, mine, apart));
  }
  return mine;
}

/// The maximum magnitude of a tile. All lanes of the warp must call; zeros beyond the matrix.
template <format_id From>
__device__ __forceinline__ tile_maximum maximum_of_lanes(const tile_task& t, const vector8<From>& x,
                                                         std::uint64_t row, std::uint32_t col) {
  constexpr std::uint32_t magnitude = (1u << (spec_of(From).storage_bits - 1)) - 1;
  std::uint32_t mine = 0;
#pragma unroll
  for (int i = 0; i < vector_length; ++i) mine = max(mine, x.code(i) & magnitude);
  const std::uint32_t maximum = of_lane_tile(mine);
  const bool finite = maximum < inf_magnitude<From>;
  if (!__any_sync(all_lanes, !finite)) return {maximum, false, true};
  std::uint32_t contribution = 0;
#pragma unroll
  for (int i = 0; i < vector_length; ++i) {
    contribution = max(contribution, amax_code<From>(t, x.code(i) & magnitude, row, col + i));
  }
  contribution = of_lane_tile(contribution);
  return {finite ? maximum : contribution, !finite, finite};
}

/// The codes of a lane's elements by the definition.
template <format_id From, format_id To>
__device__ __noinline__ uint2 defined_codes(const tile_task& t, std::uint32_t factor,
                                            const vector8<From>& x) {
  std::uint64_t codes = 0;
  for (int i = 0; i < vector_length; ++i) {
    const std::uint32_t value = numerics::decode<std::uint32_t>(spec_of(From), x.code(i));
    const std::uint32_t y = numerics::scaled<hardware>(t.scale.rule, {0, factor}, value);
    const std::uint64_t code = numerics::encode<std::uint32_t>(spec_of(To), t.cast, y, 0u).code;
    codes |= code << (8 * i);
  }
  return make_uint2(static_cast<unsigned>(codes), static_cast<unsigned>(codes >> 32));
}

/// Quantizes the tile of which the lane has the codes x, from column `col` on, and stores codes and
/// scale. All lanes of the warp must call; `inside`: the elements lie in the matrix. Requires
/// tile_task::aligned, rounding to nearest, and zeros in lanes beyond the matrix.
template <format_id From, format_id To, class Cast>
__device__ __forceinline__ void quantize_lanes(const tile_task& t, const vector8<From>& x,
                                               std::uint64_t row, std::uint32_t col, bool inside) {
  const tile_maximum maximum = maximum_of_lanes<From>(t, x, row, col);
  if (!inside) return;
  const std::uint32_t tile = col / lane_tile;
  const checked_scale s = scale_of_tile<From, To, Cast>(t, maximum, row, tile);
  if (col % lane_tile == 0) store_scale(t, s.scale, row, tile);
  const tile_factor factor = Cast::factor_of(s.scale);
  uint2 codes;
  if (s.special || t.by_definition) {
    codes = defined_codes<From, To>(t, factor.factor, x);
  } else {
    codes = Cast::template codes<From>(x, one_factor{factor});
  }
  store_codes<access::vectors>(t.codes.at(row, 0) + col, vector_length, codes);
}

/// The same for the codes' format and the scale rule of a call.
template <format_id From>
__device__ __forceinline__ void quantize_lanes(const tile_task& t, format_id to,
                                               const vector8<From>& x, std::uint64_t row,
                                               std::uint32_t col, bool inside) {
  const auto with_format = [&]<format_id To>() {
    if (t.scale.rule == scale_rule::div) {
      quantize_lanes<From, To, quotient_cast<To>>(t, x, row, col, inside);
    } else {
      quantize_lanes<From, To, finite_product_cast<To>>(t, x, row, col, inside);
    }
  };
  if (to == format_id::e4m3) return with_format.template operator()<format_id::e4m3>();
  with_format.template operator()<format_id::e5m2>();
}

}  // namespace samebits::cuda
