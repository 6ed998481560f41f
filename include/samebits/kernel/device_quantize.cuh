// Quantization inside your own kernel: a warp, or part of a warp, holds a tile in registers and
// gets the codes and the scale, the bytes that quantize() writes. For CUDA sources.
//
//   // 32 lanes hold a tile of 1 x 128, four elements each
//   const auto q = samebits::device::quantize_tile<samebits::format_id::e4m3>(x, options, index);
//   store(codes + index, q.codes);
//   if (lane == 0) scales[tile] = q.scale;
//
// A tile that several warps hold takes five steps: amax_of(), group_amax(), the maximum over the
// warps through shared memory, scale_of(), codes_of().
#pragma once

#include <cstdint>
#include <limits>

#include "numerics/bits/encode.hpp"
#include "numerics/bits/random.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/scaling.hpp"

namespace samebits::device {

/// Options of a tile's quantization; each has the meaning of its namesake in quantize_options.
///
/// The options are not checked: eps must be finite and >= 0, upper_bound > 0, the rounding
/// nearest_even or stochastic, random_bits in 1..32.
struct tile_options {
  scale_rule scale = scale_rule::te;
  samebits::nonfinite nonfinite = samebits::nonfinite::te;
  float eps = 0.0f;
  float upper_bound = std::numeric_limits<float>::infinity();
  cast_rule cast = {rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  std::uint64_t seed = 0;  ///< seed, stream and random_bits are read only by rounding::stochastic
  std::uint64_t stream = 0;
  int random_bits = 32;
};

/// The codes of one lane's elements, and the dequantization scale of their tile.
template <format_id To, int N>
struct quantized {
  storage_t<To> codes[N];
  float scale;
};

/// The Arithmetic policy of a user's kernel (numerics/arithmetic/by_definition.hpp): binary32
/// product and quotient by PTX instructions, rounded to nearest even, subnormals kept. Compiler
/// flags of the user (-ftz, -prec-div, -fmad) do not change the results.
struct hardware {
  __device__ __forceinline__ static std::uint32_t product(std::uint32_t a, std::uint32_t b) {
    float r = 0;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b)));
    return __float_as_uint(r);
  }
  __device__ __forceinline__ static std::uint32_t quotient(std::uint32_t a, std::uint32_t b) {
    float r = 0;
    asm("div.rn.f32 %0, %1, %2;" : "=f"(r) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b)));
    return __float_as_uint(r);
  }
};

/// Computes the amax of one lane's elements. The maximum over the lanes of a tile is the tile's
/// amax.
///
/// @param x the lane's elements, in registers
/// @param on_nonfinite which NaN and Inf the amax includes
/// @param count elements that lie in the matrix: x[0] to x[count - 1]
/// @returns the amax, or numerics::no_amax if no element is included
template <int N>
__device__ __forceinline__ numerics::tile_amax amax_of(const float (&x)[N], nonfinite on_nonfinite,
                                                       int count = N) {
  numerics::tile_amax amax = numerics::no_amax;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (i < count) {
      amax = numerics::combined(amax,
                                numerics::amax_contribution(on_nonfinite, __float_as_uint(x[i])));
    }
  }
  return amax;
}

/// Computes the maximum of `amax` over groups of Width neighbouring lanes.
///
/// Width is a power of two up to 32; groups start at multiples of Width.
///
/// @param amax the lane's amax
/// @returns the group's maximum, in each of its lanes
/// @note All lanes of a group must call together; other groups of the warp need not call.
template <int Width = 32>
__device__ __forceinline__ numerics::tile_amax group_amax(numerics::tile_amax amax) {
  static_assert(Width >= 1 && Width <= 32 && (Width & (Width - 1)) == 0);
  unsigned lane = 0;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  const unsigned group = 0xFFFFFFFFu >> (32 - Width);
  const unsigned lanes = group << (lane / Width * Width);
#pragma unroll
  for (int apart = Width / 2; apart > 0; apart /= 2) {
    amax = numerics::combined(amax, __shfl_xor_sync(lanes, amax, apart, Width));
  }
  return amax;
}

/// Computes the scale of a tile.
///
/// @param options scale rule, eps, upper bound and policy for NaN and Inf
/// @param amax the maximum over all elements of the tile
/// @returns the dequantization scale, and the factor that codes_of() applies to elements
template <format_id To>
__device__ __forceinline__ numerics::tile_scale scale_of(const tile_options& options,
                                                         numerics::tile_amax amax) {
  const numerics::scale_settings settings = {
      options.scale, options.nonfinite, numerics::binary32::magnitude(__float_as_uint(options.eps)),
      __float_as_uint(options.upper_bound)};
  return numerics::scale_of<hardware>(spec_of(To), settings, amax);
}

/// Computes the codes of one lane's elements.
///
/// @param x the lane's elements, in registers
/// @param scale the tile's scale, from scale_of()
/// @param options scale rule, rounding, overflow and random bits
/// @param index random index of x[0]; x[i] has index + i. quantize() uses offset + row * pitch +
///   column.
/// @param count elements that lie in the matrix; codes from `count` on are 0
/// @returns the codes, and the tile's dequantization scale
template <format_id To, int N>
__device__ __forceinline__ quantized<To, N> codes_of(const float (&x)[N],
                                                     const numerics::tile_scale& scale,
                                                     const tile_options& options,
                                                     std::uint64_t index, int count = N) {
  static_assert(To == format_id::e4m3 || To == format_id::e5m2);
  const bool stochastic = options.cast.rounding == rounding::stochastic;
  const int k = options.random_bits;
  const auto per_block = static_cast<std::uint64_t>(numerics::fields_per_block(k));
  quantized<To, N> q;
  q.scale = __uint_as_float(scale.dequantization_scale);
  auto random = numerics::philox4x32_10(0, 0, 0);
  std::uint64_t random_block = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    std::uint32_t dither = 0;
    if (stochastic) {
      const std::uint64_t element = index + static_cast<std::uint64_t>(i);
      const std::uint64_t block = element / per_block;
      if (i == 0 || block != random_block) {
        random = numerics::philox4x32_10(options.seed, options.stream, block);
        random_block = block;
      }
      dither = numerics::align_random<std::uint32_t>(
          numerics::field_of(random, static_cast<int>(element % per_block), k), k);
    }
    const std::uint32_t y = numerics::scaled<hardware>(options.scale, scale, __float_as_uint(x[i]));
    const auto code = numerics::encode<std::uint32_t>(spec_of(To), options.cast, y, dither).code;
    q.codes[i] = static_cast<storage_t<To>>(i < count ? code : 0);
  }
  return q;
}

/// Quantizes the tile that a group of Width lanes holds, N elements per lane.
///
/// @param x the lane's elements, in registers
/// @param options options of the tile, equal in all lanes
/// @param index random index of the lane's first element, as in codes_of()
/// @param count elements of this lane that lie in the matrix: x[0] to x[count - 1]
/// @returns the lane's codes, and the tile's dequantization scale
/// @note All lanes of a group must call together; other groups of the warp need not call.
template <format_id To, int Width = 32, int N>
__device__ __forceinline__ quantized<To, N> quantize_tile(const float (&x)[N],
                                                          const tile_options& options,
                                                          std::uint64_t index = 0, int count = N) {
  const numerics::tile_amax amax = group_amax<Width>(amax_of(x, options.nonfinite, count));
  return codes_of<To>(x, scale_of<To>(options, amax), options, index, count);
}

}  // namespace samebits::device
