// Scaling and rounding of eight elements: by the FP8 conversion, by division and by random bits.
//
// Each is the definition's result for finite elements of a tile with a scale it serves(); the rest
// goes through defined_strip().
#pragma once

#include <cstdint>

#include "backends/cuda/native/fp8.cuh"
#include "backends/cuda/native/patch.cuh"
#include "numerics/random.hpp"

namespace samebits::cuda {

/// Nearest even, saturating, of a product (te, rcp, pow2). NaN and Inf need no care.
template <format_id To>
struct product_cast {
  static constexpr bool needs_finite = false;
  static constexpr int field = 0;
  __device__ __forceinline__ static bool serves(const tile_scale&) { return true; }

  template <format_id From, class Scales>
  __device__ __forceinline__ static uint2 codes(const strip_of<From>& x, const Scales& scales) {
    std::uint32_t y[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto scaled = [&](int k) {
        return __float_as_uint(
            __fmul_rn(element<From>(x, k), __uint_as_float(scales.of(k).factor)));
      };
      y[i / 4] |= fp8_pair<To>(scaled(i), scaled(i + 1)) << (i % 4 * 8);
    }
    return make_uint2(y[0], y[1]);
  }
};

/// Nearest even, saturating, of a quotient (div).
///
/// q0 = RN(x r) is within 1.5 ulp of x / s, q1 = RN(q0 + (x - q0 s) r) within one, and then
/// RN(q1 + (x - q1 s) r) is the quotient rounded to nearest even, r being RN(1 / s) (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990). That needs
/// exact remainders, multiples of ulp(q) ulp(s): elements that do not end as zero are at least
/// 2^-18 s, so with s >= 2^-80 these are at least 2^-144; smaller elements stay too small to
/// matter.
template <format_id To>
struct quotient_cast {
  static constexpr bool needs_finite = true;
  static constexpr int field = 0;
  static constexpr std::uint32_t least = (127u - 80u) << 23;
  __device__ __forceinline__ static bool serves(const tile_scale& s) { return s.factor >= least; }

  template <format_id From, class Scales>
  __device__ __forceinline__ static uint2 codes(const strip_of<From>& x, const Scales& scales) {
    std::uint32_t y[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto scaled = [&](int k) {
        const float s = __uint_as_float(scales.of(k).factor);
        const float r = __frcp_rn(s);  // one for a strip where its elements share the scale
        const float a = element<From>(x, k);
        const float q0 = __fmul_rn(a, r);
        const float q1 = __fmaf_rn(__fmaf_rn(-q0, s, a), r, q0);
        const float q = __fmaf_rn(__fmaf_rn(-q1, s, a), r, q1);
        return __float_as_uint(q) | (__float_as_uint(a) & 0x80000000u);  // -0 became +0
      };
      y[i / 4] |= fp8_pair<To>(scaled(i), scaled(i + 1)) << (i % 4 * 8);
    }
    return make_uint2(y[0], y[1]);
  }
};

/// Stochastic with fields of Field bits, of a product.
///
/// |y| + R * ulp, both additions rounded toward zero by the FP adder: the first to a grid that ulp
/// is a multiple of, the second (adding 2^(23 - mantissa bits) binades) to ulp itself, so together
/// they round toward zero once. ulp is that of y's binade, or of the target's subnormals. 32 random
/// bits do not fit a significand: their low half goes first, to a grid that the high half's steps
/// are multiples of.
template <format_id To, int Field>
struct drawn_cast {
  static constexpr bool needs_finite = true;
  static constexpr int field = Field;
  static constexpr int mantissa = spec_of(To).mantissa_bits;
  __device__ __forceinline__ static bool serves(const tile_scale&) { return true; }

  SAMEBITS_INLINE static constexpr float power(int e) {
    float p = 1;
    for (; e > 0; --e) p *= 2;
    for (; e < 0; ++e) p /= 2;
    return p;
  }
  /// `bits` bits (at most 16) as a fraction of ulp, in units of the binade; 4B000000 is 2^23.
  template <int Bits, int Place>
  __device__ __forceinline__ static float fraction(std::uint32_t bits) {
    constexpr float unit = power(-Place - mantissa);
    return __fmaf_rn(__uint_as_float(bits), unit, -8388608.0f * unit);
  }
  __device__ __forceinline__ static std::uint32_t rounded(float y, std::uint32_t word, int at) {
    constexpr auto least = static_cast<std::uint32_t>(128 - spec_of(To).bias) << 23;
    const float binade = __uint_as_float(max(__float_as_uint(y) & 0x7F800000u, least));
    float sum;
    if constexpr (Field == 8) {
      const std::uint32_t r = __byte_perm(word, 0x4B000000u, 0x7440u | (at & 3));
      sum = __fmaf_rz(binade, fraction<8, 8>(r), fabsf(y));
    } else if constexpr (Field == 16) {
      const std::uint32_t r = __byte_perm(word, 0x4B000000u, at == 0 ? 0x7410 : 0x7432);
      sum = __fmaf_rz(binade, fraction<16, 16>(r), fabsf(y));
    } else {
      const std::uint32_t low = __byte_perm(word, 0x4B000000u, 0x7410);
      const std::uint32_t high = __byte_perm(word, 0x4B000000u, 0x7432);
      sum = __fmaf_rz(binade, fraction<16, 32>(low), fabsf(y));
      sum = __fmaf_rz(binade, fraction<16, 16>(high), sum);
    }
    constexpr float up = power(23 - mantissa);
    const float kept = __fmaf_rn(binade, -up, __fmaf_rz(binade, up, sum));
    return __float_as_uint(kept) | (__float_as_uint(y) & 0x80000000u);
  }

  /// words: the random words of the strip, Field / 4 of them, of which only the top K bits of each
  /// field are set.
  template <format_id From, class Scales>
  __device__ __forceinline__ static uint2 codes(const strip_of<From>& x, const Scales& scales,
                                                const std::uint32_t* words) {
    constexpr int fields = 32 / Field;  // of a word
    std::uint32_t y[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto drawn = [&](int k) {
        const float scaled = __fmul_rn(element<From>(x, k), __uint_as_float(scales.of(k).factor));
        return rounded(scaled, words[k / fields], k % fields);
      };
      y[i / 4] |= fp8_pair<To>(drawn(i), drawn(i + 1)) << (i % 4 * 8);
    }
    return make_uint2(y[0], y[1]);
  }
};

/// The random words of Rows strips below one another, in order.
template <int Field, int Rows>
struct strip_words {
  static constexpr int words = Field / 4;
  std::uint32_t w[Rows][words];

  /// All 32 lanes of the warp come here; index_of(row, col) % 8 == 0, % 16 where Field is 8 and
  /// the lane is even.
  __device__ __forceinline__ strip_words(const patch_task& t, std::uint64_t row,
                                         std::uint32_t col) {
    const int spare = Field - t.random.k;
    const std::uint32_t low = (std::uint32_t{1} << spare) - 1;  // spare < 32, K being at least 1
    const std::uint32_t keep = ~(Field == 8    ? low * 0x01010101u
                                 : Field == 16 ? low * 0x00010001u
                                               : low);
    if constexpr (Field == 8) {
      // A block serves the strips of two lanes: each lane computes those of every other row.
      const unsigned odd = threadIdx.x % 2;
#pragma unroll
      for (int i = 0; i < Rows; i += 2) {
        const auto block = numerics::philox4x32_10(
            t.random.keys, t.random.stream, t.index_of(row + i + odd, col - odd * strip) / 16);
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const std::uint32_t mine = odd != 0 ? block.word[2 + k] : block.word[k];
          const std::uint32_t others = odd != 0 ? block.word[k] : block.word[2 + k];
          const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFFu, others, 1);
          w[i][k] = (odd != 0 ? got : mine) & keep;
          w[i + 1][k] = (odd != 0 ? mine : got) & keep;
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < Rows; ++i) {
#pragma unroll
        for (int b = 0; b < words / 4; ++b) {
          const auto block = numerics::philox4x32_10(t.random.keys, t.random.stream,
                                                     t.index_of(row + i, col) / (128 / Field) + b);
#pragma unroll
          for (int k = 0; k < 4; ++k) w[i][4 * b + k] = block.word[k] & keep;
        }
      }
    }
  }
};

/// The codes of Rows strips below one another; scales_of_row(i) are those of a row.
template <format_id From, class Cast, int Rows, class ScalesOfRow>
__device__ __forceinline__ void convert_strips(const patch_task& t, std::uint64_t row,
                                               std::uint32_t col, const strip_of<From> (&x)[Rows],
                                               const ScalesOfRow& scales_of_row,
                                               uint2 (&codes)[Rows]) {
  if constexpr (Cast::field == 0) {
#pragma unroll
    for (int i = 0; i < Rows; ++i) {
      codes[i] = Cast::template codes<From>(x[i], scales_of_row(i));
    }
  } else {
#pragma unroll
    for (int i = 0; i < Rows; i += 2) {  // two at once: random words are many registers
      const strip_words<Cast::field, 2> words(t, row + i, col);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        codes[i + k] = Cast::template codes<From>(x[i + k], scales_of_row(i + k), words.w[k]);
      }
    }
  }
}

}  // namespace samebits::cuda
