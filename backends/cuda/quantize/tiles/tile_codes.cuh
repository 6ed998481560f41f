// Device functions of one tile and one vector of 8 elements: the scale of a tile, and the codes of
// a vector by the definition. tile_task.cuh holds the launch parameters and loads.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/hardware.cuh"
#include "backends/cuda/quantize/tiles/tile_maxima.cuh"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/quantize/scale.hpp"

namespace samebits::cuda {

/// The scale of one tile. special: the tile's elements must be scaled and rounded by the
/// definition.
struct checked_scale {
  tile_scale scale;
  bool special;
};

/// Whether the tile's largest magnitude, once scaled, exceeds M by more than a few ulps; M is the
/// target's largest number. Rounding alone exceeds M by less than that: RN(amax * RN(M / amax)) may
/// be above M.
template <format_id From, format_id To>
__device__ __forceinline__ bool exceeds_target(const tile_task& t, const tile_maximum& maximum,
                                               const tile_scale& scale) {
  constexpr std::uint32_t few_ulps = 4;
  const float x = __uint_as_float(numerics::decode<std::uint32_t>(spec_of(From), maximum.code));
  const float factor = __uint_as_float(scale.factor);
  const float y = t.scale.rule == scale_rule::div ? __fdiv_rn(x, factor) : __fmul_rn(x, factor);
  return y > __uint_as_float(numerics::largest_value(spec_of(To)) + few_ulps);
}

/// The scale of tile (row, col). `known`: the scale that all tiles share, or null.
///
/// A shared scale may be 1 because another block found an Inf. Scaled elements of this tile may
/// then exceed the target's largest number, so the tile is checked with exceeds_target().
template <format_id From, format_id To, class Cast>
__device__ __forceinline__ checked_scale scale_of_tile(const tile_task& t,
                                                       const tile_maximum& maximum,
                                                       std::uint64_t row, std::uint64_t col,
                                                       const tile_scale* known = nullptr) {
  tile_scale scale;
  if (known != nullptr) {
    scale = *known;
  } else if (t.inverse_scales.data != nullptr) {
    scale = numerics::scale_of_inverse<hardware>(
        *reinterpret_cast<const std::uint32_t*>(t.inverse_scales.at(row, col)));
  } else {
    scale = numerics::scale_of<hardware>(spec_of(To), t.scale, maximum.amax<From>());
  }
  const bool unbounded = known != nullptr && !t.saturates && maximum.finite &&
                         exceeds_target<From, To>(t, maximum, scale);
  return {scale, unbounded || !Cast::supports(scale, maximum.finite)};
}

/// Stores the dequantization scale of tile (row, col) in the wanted outputs.
__device__ __forceinline__ void store_scale(const tile_task& t, const tile_scale& scale,
                                            std::uint64_t row, std::uint64_t col) {
  const auto store = [&](std::byte* at) {
    if (t.byte_scales) {
      *at = static_cast<std::byte>(numerics::e8m0_of(scale.dequantization_scale));
    } else {
      *reinterpret_cast<std::uint32_t*>(at) = scale.dequantization_scale;
    }
  };
  if (t.scales.data != nullptr) store(t.scales.at(row, col));
  if (t.scales_transposed.data != nullptr) store(t.scales_transposed.at(col, row));
}

/// The factor of a tile as binary32 bits: elements are multiplied or divided by it.
struct tile_factor {
  std::uint32_t factor;  ///< tile_scale::factor
  /// If the cast divides: RN(1 / factor). In kernels with statistics: the dequantization scale.
  /// Otherwise unused.
  std::uint32_t inverse;
};

/// The factor of every element of a vector: all elements lie in one tile.
struct one_factor {
  tile_factor factor;
  __device__ __forceinline__ const tile_factor& of(int) const { return factor; }
};
/// One factor per element of a vector: each element lies in another tile (tiles of one column).
struct factor_of_each {
  tile_factor factors[vector_length];
  __device__ __forceinline__ explicit factor_of_each(const tile_factor* of_tiles) {
#pragma unroll
    for (int i = 0; i < vector_length; ++i) factors[i] = of_tiles[i];
  }
  __device__ __forceinline__ const tile_factor& of(int i) const { return factors[i]; }
};

/// The codes of a vector of 8 elements by the definition. Each element is read again from memory.
/// The factor of element i is factors[i * tile_step].
template <format_id From, format_id To>
__device__ __noinline__ uint2 defined_vector(const tile_task& t, const tile_factor* factors,
                                             int tile_step, std::uint64_t row, std::uint32_t col) {
  std::uint64_t codes = 0;
#pragma unroll 1
  for (int i = 0; i < vector_length && col + i < t.cols; ++i) {
    const std::uint32_t x =
        numerics::decode<std::uint32_t>(spec_of(From), load_element<From>(t, row, col + i));
    const std::uint32_t y =
        numerics::scaled<hardware>(t.scale.rule, {0, factors[i * tile_step].factor}, x);
    const std::uint32_t dither =
        t.cast.rounding == rounding::stochastic ? dither_of(t.random, t.index_of(row, col + i)) : 0;
    const std::uint64_t code = numerics::encode<std::uint32_t>(spec_of(To), t.cast, y, dither).code;
    codes |= code << (8 * i);
  }
  return make_uint2(static_cast<unsigned>(codes), static_cast<unsigned>(codes >> 32));
}

/// Stores the codes of a vector. Only the first `count` codes lie in the matrix.
template <access Access>
__device__ __forceinline__ void store_codes(std::byte* at, std::uint64_t count, uint2 codes) {
  if constexpr (Access == access::vectors) {
    *reinterpret_cast<uint2*>(at) = codes;
  } else {
#pragma unroll
    for (int i = 0; i < vector_length; ++i) {
      const std::uint32_t word = i < 4 ? codes.x : codes.y;
      if (static_cast<std::uint64_t>(i) < count) {
        at[i] = static_cast<std::byte>(word >> (i % 4 * 8));
      }
    }
  }
}

}  // namespace samebits::cuda
