// What the kernels of native/quantize.cu share: the task, amax of a thread's elements, the two ways
// of holding 16 elements.
#pragma once

#include <cstdint>

#include "backends/cuda/convert_ops.cuh"
#include "backends/cuda/hardware.cuh"
#include "backends/cuda/launch.cuh"
#include "backends/cuda/native/fp8.cuh"
#include "numerics/decode.hpp"
#include "numerics/encode.hpp"
#include "numerics/scale.hpp"
#include "numerics/tile.hpp"

namespace samebits::cuda {

using numerics::tile_amax;

inline constexpr int elements = 16;  // of a thread

struct tiles_task {
  const std::byte* in;
  std::byte* codes;
  std::byte* scales;  ///< null where they are not wanted
  std::uint64_t in_row_bytes, codes_row_bytes, scales_row_bytes, scales_col_bytes;
  std::uint64_t rows;
  std::uint32_t packs;           ///< of 16 elements in a row
  std::uint32_t threads_a_tile;  ///< a power of two up to 16
  numerics::scale_rule scale;
  cast_rule cast;
  random_source random;
  std::uint64_t index, pitch;
  const std::uint32_t* skip;
};

/// The amax of a thread's elements. The maximum of magnitudes as integers is it already unless one
/// of them is NaN, or Inf where that is skipped.
template <format_id From, int N>
__device__ __forceinline__ tile_amax amax_of(const packed<spec_of(From).storage_bits, N>& x,
                                             nonfinite policy) {
  constexpr int bits = spec_of(From).storage_bits;
  std::uint32_t most = 0;
  if constexpr (bits == 16) {
    std::uint32_t pair = 0;
#pragma unroll
    for (const std::uint32_t w : x.w) pair = __vmaxu2(pair, w & 0x7FFF7FFFu);
    most = max(pair >> 16, pair & 0xFFFFu);
  } else {
#pragma unroll
    for (const std::uint32_t w : x.w) most = max(most, w & 0x7FFFFFFFu);
  }
  constexpr auto inf = static_cast<std::uint32_t>(numerics::inf_code(spec_of(From)));
  if (most < inf) {
    return static_cast<tile_amax>(numerics::decode<std::uint32_t>(spec_of(From), most));
  }
  tile_amax amax = numerics::nothing_counted;
#pragma unroll 1
  for (const std::uint32_t w : x.w) {
    if constexpr (bits == 16) {
      amax = numerics::joined(
          amax, numerics::counted(policy, numerics::decode<std::uint32_t>(spec_of(From), w >> 16)));
    }
    const std::uint32_t low = bits == 16 ? w & 0xFFFFu : w;
    amax = numerics::joined(
        amax, numerics::counted(policy, numerics::decode<std::uint32_t>(spec_of(From), low)));
  }
  return amax;
}

/// Rounds by the definition; FieldBits of random bits for each element, or 0.
template <format_id To, int FieldBits>
struct defined_cast {
  static constexpr int field = FieldBits;
  __device__ __forceinline__ static std::uint32_t pair(const tiles_task& t, std::uint32_t a,
                                                       std::uint32_t b, std::uint32_t dither_a,
                                                       std::uint32_t dither_b) {
    const cast_rule rule{
        FieldBits == 0 ? rounding::nearest_even : rounding::stochastic,
        t.cast.on_overflow == overflow::saturate ? overflow::saturate : overflow::ieee,
        nan_policy::canonical};
    return numerics::encode<std::uint32_t>(spec_of(To), rule, a, dither_a).code |
           numerics::encode<std::uint32_t>(spec_of(To), rule, b, dither_b).code << 8;
  }
};

template <format_id From>
__device__ __forceinline__ std::uint32_t element(
    const packed<spec_of(From).storage_bits, elements>& x, int i) {
  return numerics::decode<std::uint32_t>(spec_of(From), x.code(i));
}

template <format_id From, class Cast>
__device__ __forceinline__ packed<8, elements> codes_of(
    const tiles_task& t, const packed<spec_of(From).storage_bits, elements>& x,
    const numerics::tile_scale& scale, std::uint64_t index) {
  constexpr scale_math math = scale_math::te;  // a product, as under rcp and pow2
  packed<8, elements> y{};
  constexpr int fields = Cast::field == 0 ? elements : 128 / (Cast::field == 0 ? 1 : Cast::field);
  numerics::philox_block block{};
  [[maybe_unused]] const std::uint32_t keep = ~std::uint32_t{0} << (32 - t.random.k);
#pragma unroll
  for (int i = 0; i < elements; i += 2) {
    std::uint32_t dither[2] = {0, 0};
    if constexpr (Cast::field != 0) {
      if (i % fields == 0) {
        block = numerics::philox4x32_10(t.random.keys, t.random.stream,
                                        (index + static_cast<std::uint64_t>(i)) / fields);
      }
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const int position = (i + k) % fields * Cast::field;
        dither[k] = (block.word[position / 32] << (32 - Cast::field - position % 32)) & keep;
      }
    }
    const std::uint32_t a = numerics::scaled<hardware>(math, scale, element<From>(x, i));
    const std::uint32_t b = numerics::scaled<hardware>(math, scale, element<From>(x, i + 1));
    y.w[i / 4] |= Cast::pair(t, a, b, dither[0], dither[1]) << (i % 4 * 8);
  }
  return y;
}

template <format_id From>
__device__ __forceinline__ packed<spec_of(From).storage_bits, elements> load_pack(
    const tiles_task& t, std::uint64_t row, std::uint32_t pack) {
  constexpr int bytes = elements * spec_of(From).storage_bits / 8;
  return packed<spec_of(From).storage_bits, elements>::load(t.in + row * t.in_row_bytes +
                                                            std::uint64_t{pack} * bytes);
}

template <format_id From, class Cast>
__device__ __forceinline__ void store_codes(const tiles_task& t,
                                            const packed<spec_of(From).storage_bits, elements>& x,
                                            const numerics::tile_scale& scale, std::uint64_t row,
                                            std::uint32_t pack) {
  const std::uint64_t col = std::uint64_t{pack} * elements;
  codes_of<From, Cast>(t, x, scale, t.index + row * t.pitch + col)
      .store(t.codes + row * t.codes_row_bytes + col);
}

__device__ __forceinline__ void store_scale(const tiles_task& t, const numerics::tile_scale& scale,
                                            std::uint64_t row, std::uint64_t col) {
  *reinterpret_cast<std::uint32_t*>(t.scales + row * t.scales_row_bytes +
                                    col * t.scales_col_bytes) = scale.stored;
}

/// The 16 elements of a thread as pieces of 16 bytes, a tile's width apart among its threads: loads
/// of neighbouring threads are then neighbours in memory.
template <format_id From>
struct pieces {
  static constexpr int bits = spec_of(From).storage_bits;
  static constexpr int length = 128 / bits;  // elements
  static constexpr int count = elements / length;
  packed<bits, length> x[count];

  /// Column of piece p: `pack` counts threads along the row.
  __device__ __forceinline__ static std::uint64_t column(const tiles_task& t, std::uint32_t pack,
                                                         int p) {
    const std::uint32_t lane = pack & (t.threads_a_tile - 1);
    return std::uint64_t{(pack - lane) * elements} + (p * t.threads_a_tile + lane) * length;
  }
  __device__ __forceinline__ static bool inside(const tiles_task& t, std::uint64_t row,
                                                std::uint32_t pack, int p) {
    return row < t.rows && column(t, pack, p) < std::uint64_t{t.packs} * elements;
  }
  __device__ __forceinline__ void load(const tiles_task& t, std::uint64_t row, std::uint32_t pack) {
#pragma unroll
    for (int p = 0; p < count; ++p) {
      x[p] = {};
      if (inside(t, row, pack, p)) {
        x[p] = packed<bits, length>::load(t.in + row * t.in_row_bytes +
                                          column(t, pack, p) * (bits / 8));
      }
    }
  }
  __device__ __forceinline__ tile_amax amax(const tiles_task& t, std::uint64_t row,
                                            std::uint32_t pack) const {
    tile_amax most = numerics::nothing_counted;
#pragma unroll
    for (int p = 0; p < count; ++p) {
      if (inside(t, row, pack, p)) {
        most = numerics::joined(most, amax_of<From, length>(x[p], t.scale.on_nonfinite));
      }
    }
    return most;
  }
  /// Scales, rounds by the FP8 conversion and stores.
  template <format_id To, bool Divide>
  __device__ __forceinline__ void quantize(const tiles_task& t, const numerics::tile_scale& scale,
                                           std::uint64_t row, std::uint32_t pack) const {
    constexpr scale_math math = Divide ? scale_math::div : scale_math::te;
#pragma unroll
    for (int p = 0; p < count; ++p) {
      if (!inside(t, row, pack, p)) continue;
      packed<8, length> y{};
#pragma unroll
      for (int i = 0; i < length; i += 2) {
        const auto scaled = [&](int k) {
          return numerics::scaled<hardware>(
              math, scale, numerics::decode<std::uint32_t>(spec_of(From), x[p].code(k)));
        };
        y.w[i / 4] |= fp8_pair<To>(scaled(i), scaled(i + 1)) << (i % 4 * 8);
      }
      y.store(t.codes + row * t.codes_row_bytes + column(t, pack, p));
    }
  }
};

}  // namespace samebits::cuda
