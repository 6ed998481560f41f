// Scaling and rounding of eight elements: by the FP8 conversion, by division and by random bits.
//
// Each is the definition's result for finite elements of a tile with a scale it serves(); the rest
// goes through defined_strip().
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/quantize/tiles/patch.cuh"
#include "numerics/bits/random.hpp"

namespace samebits::cuda {

/// By the definition, whatever the call asks.
struct defined_cast {
  static constexpr bool serves_all = false;
  static constexpr int field = 0;
  __device__ __forceinline__ static bool serves(const tile_scale&, bool) { return false; }
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, 0};
  }
};

/// Nearest even, saturating, of a product (te, rcp, pow2). NaN and Inf need no care.
template <format_id To>
struct product_cast {
  static constexpr bool serves_all = true;
  static constexpr int field = 0;
  __device__ __forceinline__ static bool serves(const tile_scale&, bool) { return true; }
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, 0};
  }

  template <format_id From, class Factors>
  __device__ __forceinline__ static uint2 codes(const strip_of<From>& x, const Factors& factors) {
    std::uint32_t y[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto scaled = [&](int k) {
        return __float_as_uint(
            __fmul_rn(element<From>(x, k), __uint_as_float(factors.of(k).factor)));
      };
      y[i / 4] |= fp8_pair<To>(scaled(i), scaled(i + 1)) << (i % 4 * 8);
    }
    return make_uint2(y[0], y[1]);
  }
};

/// The same for finite elements alone: whatever the overflow policy does with what is not finite,
/// and a factor that bounds them leaves it nothing else to do.
template <format_id To>
struct finite_product_cast : product_cast<To> {
  static constexpr bool serves_all = false;
  __device__ __forceinline__ static bool serves(const tile_scale&, bool finite) { return finite; }
};

/// Nearest even, saturating, of a quotient (div).
///
/// q0 = RN(x r) is within 1.5 ulp of x / s, q1 = RN(q0 + (x - q0 s) r) within one, and then
/// RN(q1 + (x - q1 s) r) is the quotient rounded to nearest even, r being RN(1 / s) (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990). That needs
/// exact remainders, multiples of ulp(q) ulp(s): elements that do not end as zero are at least
/// 2^-18 s, so with s >= 2^-80 these are at least 2^-144; smaller elements stay too small to
/// matter. And it needs an r that is a normal number: s is FLT_MAX / M at most, unless an Inf
/// elsewhere in the tile counts.
template <format_id To>
struct quotient_cast {
  static constexpr bool serves_all = false;
  static constexpr int field = 0;
  static constexpr std::uint32_t least = (127u - 80u) << 23, most = (127u + 120u) << 23;
  __device__ __forceinline__ static bool serves(const tile_scale& s, bool finite) {
    return finite && s.factor >= least && s.factor <= most;
  }
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, __float_as_uint(__frcp_rn(__uint_as_float(s.factor)))};
  }

  template <format_id From, class Factors>
  __device__ __forceinline__ static uint2 codes(const strip_of<From>& x, const Factors& factors) {
    std::uint32_t y[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto scaled = [&](int k) {
        const float s = __uint_as_float(factors.of(k).factor);
        const float r = __uint_as_float(factors.of(k).reciprocal);
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
/// Above the target's subnormals the bits that a code leaves out of y are its lowest: R is added to
/// the top of them, as integers, and what remains below is cut off. Elsewhere ulp is that of the
/// subnormals, and the FP adder does the same; see by_adder().
template <format_id To, int Field>
struct drawn_cast {
  static constexpr bool serves_all = false;
  static constexpr int field = Field;
  static constexpr int mantissa = spec_of(To).mantissa_bits;
  static constexpr int left_out = 23 - mantissa;
  static constexpr int fields = 32 / Field;  // of a word
  __device__ __forceinline__ static bool serves(const tile_scale& s, bool finite) {
    return finite && s.factor <= numerics::binary32::max_finite;
  }
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, 0};
  }

  SAMEBITS_INLINE static constexpr float power(int e) {
    float p = 1;
    for (; e > 0; --e) p *= 2;
    for (; e < 0; ++e) p /= 2;
    return p;
  }
  /// Field `at` of a word as an integer, or'ed to the top byte `high`.
  __device__ __forceinline__ static std::uint32_t field_at(std::uint32_t word, int at,
                                                           std::uint32_t high) {
    if constexpr (Field == 8) return __byte_perm(word, high, 0x7440u | (at & 3));
    return __byte_perm(word, high, at == 0 ? 0x7410 : 0x7432);
  }
  /// For |y| of at least the target's smallest normal number, or 0.
  __device__ __forceinline__ static std::uint32_t by_integers(std::uint32_t y, std::uint32_t word,
                                                              int at) {
    std::uint32_t sum;
    if constexpr (Field == 32) {
      sum = y + (word >> (32 - left_out));
    } else {
      sum = y + field_at(word, at, 0) * (1u << (left_out - Field));
    }
    return sum & (~std::uint32_t{0} << left_out);
  }
  /// `bits` bits (at most 16) as a fraction of ulp, in units of the binade; 4B000000 is 2^23.
  template <int Place>
  __device__ __forceinline__ static float fraction(std::uint32_t bits) {
    constexpr float unit = power(-Place - mantissa);
    return __fmaf_rn(__uint_as_float(bits), unit, -8388608.0f * unit);
  }
  /// For any finite y. |y| + R * ulp, then a number whose ulp is the code's, both rounded toward
  /// zero: the first to a grid that ulp is a multiple of, so together they round toward zero once.
  /// ulp is that of y's binade, or of the target's subnormals. 32 random bits do not fit a
  /// significand: their low half goes first, to a grid of which the high half's steps are
  /// multiples.
  __device__ __forceinline__ static std::uint32_t by_adder(float y, std::uint32_t word, int at) {
    constexpr std::uint32_t two_to_23 = 0x4B000000u;
    constexpr auto least = static_cast<std::uint32_t>(128 - spec_of(To).bias) << 23;
    const float binade = __uint_as_float(max(__float_as_uint(y) & 0x7F800000u, least));
    float sum;
    if constexpr (Field == 32) {
      sum = __fmaf_rz(binade, fraction<32>(field_at(word, 0, two_to_23)), fabsf(y));
      sum = __fmaf_rz(binade, fraction<16>(field_at(word, 1, two_to_23)), sum);
    } else {
      sum = __fmaf_rz(binade, fraction<Field>(field_at(word, at, two_to_23)), fabsf(y));
    }
    constexpr float up = power(left_out);
    const float kept = __fmaf_rn(binade, -up, __fmaf_rz(binade, up, sum));
    return __float_as_uint(kept) | (__float_as_uint(y) & 0x80000000u);
  }
  /// Whether the codes by_integers() gave stand for more than the smallest normal number each, so
  /// that the elements were above it.
  __device__ __forceinline__ static bool all_normal(std::uint32_t a, std::uint32_t b) {
    constexpr std::uint32_t up = (0x80u - ((1u << mantissa) + 1)) * 0x01010101u;  // to bit 7
    const std::uint32_t sums = ((a & 0x7F7F7F7Fu) + up) & ((b & 0x7F7F7F7Fu) + up);
    return (sums & 0x80808080u) == 0x80808080u;
  }

  /// words: the random words of the strip, Field / 4 of them, of which only the top K bits of each
  /// field are set.
  template <format_id From, class Factors>
  __device__ __forceinline__ static uint2 codes(const strip_of<From>& x, const Factors& factors,
                                                const std::uint32_t* words) {
    std::uint32_t codes[2] = {0, 0};
    const auto scaled = [&](int k) {
      return __fmul_rn(element<From>(x, k), __uint_as_float(factors.of(k).factor));
    };
#pragma unroll
    for (int i = 0; i < strip; i += 2) {
      const auto drawn = [&](int k) {
        return by_integers(__float_as_uint(scaled(k)), words[k / fields], k % fields);
      };
      codes[i / 4] |= fp8_pair<To>(drawn(i), drawn(i + 1)) << (i % 4 * 8);
    }
    if (!all_normal(codes[0], codes[1])) {
      codes[0] = codes[1] = 0;
#pragma unroll
      for (int i = 0; i < strip; i += 2) {
        const auto drawn = [&](int k) {
          return by_adder(scaled(k), words[k / fields], k % fields);
        };
        codes[i / 4] |= fp8_pair<To>(drawn(i), drawn(i + 1)) << (i % 4 * 8);
      }
    }
    return make_uint2(codes[0], codes[1]);
  }
};

/// The random words of a thread's strips, row after row.
template <int Field>
class strip_words {
 public:
  static constexpr int words = Field / 4;  // of a strip
  static constexpr int rows_at_once = Field == 8 ? 2 : 1;

  /// index: that of the thread's first element; it and t.pitch are multiples of 8, and of 16 where
  /// Field is 8 and the lane is even.
  __device__ __forceinline__ strip_words(const patch_task& t, std::uint64_t index)
      : random_(t.random), odd_(threadIdx.x % 2), step_(t.pitch / fields) {
    if constexpr (Field == 8) index += odd_ * (t.pitch - strip);
    block_ = index / fields;
    const int spare = Field - t.random.k;
    const std::uint32_t low = (std::uint32_t{1} << spare) - 1;  // spare < 32, K being at least 1
    keep_ = ~(Field == 8 ? low * 0x01010101u : Field == 16 ? low * 0x00010001u : low);
  }

  /// Those of the next rows_at_once rows; all lanes of the warp come here.
  __device__ __forceinline__ void draw(std::uint32_t (&w)[rows_at_once][words]) {
    if constexpr (Field == 8) {
      // A block serves the strips of two lanes: each lane computes those of every other row. Chosen
      // by masks, since a branch would part the lanes.
      const std::uint32_t mask = 0u - odd_;
      const auto choose = [mask](std::uint32_t even_one, std::uint32_t odd_one) {
        return (even_one & ~mask) | (odd_one & mask);
      };
      const auto block = numerics::philox4x32_10(random_.keys, random_.stream, wrapped(block_));
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const std::uint32_t mine = choose(block.word[k], block.word[2 + k]);
        const std::uint32_t got =
            __shfl_xor_sync(0xFFFFFFFFu, choose(block.word[2 + k], block.word[k]), 1);
        w[0][k] = choose(mine, got) & keep_;
        w[1][k] = choose(got, mine) & keep_;
      }
    } else {
#pragma unroll
      for (int b = 0; b < words / 4; ++b) {
        const auto block =
            numerics::philox4x32_10(random_.keys, random_.stream, wrapped(block_ + b));
#pragma unroll
        for (int k = 0; k < 4; ++k) w[0][4 * b + k] = block.word[k] & keep_;
      }
    }
    block_ += rows_at_once * step_;
  }

 private:
  static constexpr int fields = 128 / Field;  // of a block

  /// Indices are counted modulo 2^64, so blocks are modulo 2^64 / fields.
  __device__ __forceinline__ static std::uint64_t wrapped(std::uint64_t block) {
    return block & (~std::uint64_t{0} / fields);
  }

  const random_source& random_;
  unsigned odd_;
  std::uint32_t keep_;
  std::uint64_t block_, step_;
};

}  // namespace samebits::cuda
