// Scales and rounds a vector of 8 elements: by the FP8 conversion, by division or with random bits.
//
// Each cast gives the definition's codes for the elements and scales that its supports() accepts.
// All others are rounded by defined_vector(). The members of a cast:
// - supports_all: supports() is always true
// - field: width of the random fields in bits, 0 without random bits
// - factor_of(): the factor of a tile from its scale
// - codes(): the codes of a vector
#pragma once

#include <cstdint>

#include "backends/cuda/instructions/fp8.cuh"
#include "backends/cuda/instructions/warp.cuh"
#include "backends/cuda/quantize/tiles/tile_codes.cuh"
#include "numerics/bits/random.hpp"

namespace samebits::cuda {

/// Members that most casts share.
struct any_cast {
  static constexpr bool supports_all = false;
  static constexpr int field = 0;
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, 0};
  }
};

/// Accepts nothing: every vector is rounded by the definition.
struct defined_cast : any_cast {
  __device__ __forceinline__ static bool supports(const tile_scale&, bool) { return false; }
};

/// The codes of the 8 numbers whose binary32 bits number(k) returns.
template <format_id To, class Number>
__device__ __forceinline__ uint2 fp8_vector(const Number& number) {
  std::uint32_t y[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < vector_length; i += 2) {
    y[i / 4] |= fp8_pair<To>(number(i), number(i + 1)) << (i % 4 * 8);
  }
  return make_uint2(y[0], y[1]);
}

/// RN(x * factor), rounded to nearest even, saturating; for the scale rules that multiply (te, rcp,
/// pow2 and others). NaN and Inf give the definition's codes, too.
template <format_id To>
struct product_cast : any_cast {
  static constexpr bool supports_all = true;
  __device__ __forceinline__ static bool supports(const tile_scale&, bool) { return true; }

  template <format_id From, class Factors>
  __device__ __forceinline__ static uint2 codes(const vector8<From>& x, const Factors& factors) {
    return fp8_vector<To>([&](int k) {
      return __float_as_uint(__fmul_rn(element<From>(x, k), __uint_as_float(factors.of(k).factor)));
    });
  }
};

/// product_cast for tiles of finite elements, under any overflow policy. A factor that bounds the
/// scaled elements leaves the overflow policy nothing to do.
template <format_id To>
struct finite_product_cast : product_cast<To> {
  static constexpr bool supports_all = false;
  __device__ __forceinline__ static bool supports(const tile_scale&, bool finite) { return finite; }
};

/// RN(x / s), rounded to nearest even, saturating; for scale_rule::div.
///
/// q0 = RN(x r) is within 1.5 ulp of x / s, with r = RN(1 / s). q1 = RN(q0 + (x - q0 s) r) is
/// within one ulp. Then RN(q1 + (x - q1 s) r) is the quotient rounded to nearest even (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
///
/// The proof needs exact remainders, which are multiples of ulp(q) ulp(s). Elements that do not end
/// as zero are at least 2^-18 s. So with s >= 2^-80 the remainders are at least 2^-144. Smaller
/// elements stay too small to matter. The proof also needs a normal r. s is FLT_MAX / M at most,
/// unless an Inf elsewhere in the tile counts.
template <format_id To>
struct quotient_cast : any_cast {
  static constexpr std::uint32_t minimum = (127u - 80u) << 23, maximum = (127u + 120u) << 23;
  __device__ __forceinline__ static bool supports(const tile_scale& s, bool finite) {
    return finite && s.factor >= minimum && s.factor <= maximum;
  }
  __device__ __forceinline__ static tile_factor factor_of(const tile_scale& s) {
    return {s.factor, __float_as_uint(__frcp_rn(__uint_as_float(s.factor)))};
  }

  template <format_id From, class Factors>
  __device__ __forceinline__ static uint2 codes(const vector8<From>& x, const Factors& factors) {
    return fp8_vector<To>([&](int k) {
      const float s = __uint_as_float(factors.of(k).factor);
      const float r = __uint_as_float(factors.of(k).inverse);
      const float a = element<From>(x, k);
      const float q0 = __fmul_rn(a, r);
      const float q1 = __fmaf_rn(__fmaf_rn(-q0, s, a), r, q0);
      const float q = __fmaf_rn(__fmaf_rn(-q1, s, a), r, q1);
      return __float_as_uint(q) | (__float_as_uint(a) & 0x80000000u);  // restores the sign of -0
    });
  }
};

/// Stochastic rounding of RN(x * factor), with random fields of Field bits; saturating.
///
/// - Normal results of the target: by_integers(). A code leaves out the lowest bits of y. R is
///   added to the top of these bits as an integer, then the bits are cut off.
/// - Subnormal results: by_adder(). ulp is the spacing of the target's subnormals, and the FP adder
///   adds R * ulp.
template <format_id To, int Field>
struct stochastic_cast : any_cast {
  static constexpr int field = Field;
  static constexpr int mantissa = spec_of(To).mantissa_bits;
  static constexpr int left_out = 23 - mantissa;
  static constexpr int fields = 32 / Field;  // random fields in a word
  __device__ __forceinline__ static bool supports(const tile_scale& s, bool finite) {
    return finite && s.factor <= numerics::binary32::max_finite;
  }

  SAMEBITS_INLINE static constexpr float power(int e) {
    float p = 1;
    for (; e > 0; --e) p *= 2;
    for (; e < 0; ++e) p /= 2;
    return p;
  }
  /// Field `at` of a word as an integer. If Field is 32: half `at` of the word, 16 bits; 0 is the low
  /// half.
  ///
  /// @param high number that is or'ed into the result; only its top byte may be nonzero. Pass 0 for
  ///   the field alone, or 2^23 as binary32 for fraction().
  __device__ __forceinline__ static std::uint32_t field_at(std::uint32_t word, int at,
                                                           std::uint32_t high) {
    if constexpr (Field == 8) return __byte_perm(word, high, 0x7440u | (at & 3));
    return __byte_perm(word, high, at == 0 ? 0x7410 : 0x7432);
  }
  /// Stochastic rounding of y, as binary32 bits, by integer addition. Requires y = 0 or |y| >= the
  /// target's smallest normal number.
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
  /// A random integer of at most 16 bits as a fraction of ulp, in units of the binade. The top byte
  /// of `bits` is 4B: read as binary32, bits is 2^23 plus the integer.
  template <int Bits>
  __device__ __forceinline__ static float fraction(std::uint32_t bits) {
    constexpr float unit = power(-Bits - mantissa);
    return __fmaf_rn(__uint_as_float(bits), unit, -8388608.0f * unit);
  }
  /// Stochastic rounding of any finite y, as binary32 bits, by the FP adder.
  ///
  /// Computes |y| + R * ulp, then cuts the sum to a multiple of ulp. Both steps round toward zero.
  /// The first step's grid divides ulp, so both steps together round toward zero once. ulp is that
  /// of y's binade, or of the target's subnormals.
  ///
  /// 32 random bits do not fit a significand. The low half is added first, on a grid that divides
  /// the steps of the high half.
  __device__ __forceinline__ static std::uint32_t by_adder(float y, std::uint32_t word, int at) {
    constexpr std::uint32_t two_to_23 = 0x4B000000u;
    constexpr auto minimum = static_cast<std::uint32_t>(128 - spec_of(To).bias) << 23;
    const float binade = __uint_as_float(max(__float_as_uint(y) & 0x7F800000u, minimum));
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
  /// Whether all 8 codes of by_integers() are above the smallest normal number. Then all 8 elements
  /// were normal, and by_integers() was right.
  __device__ __forceinline__ static bool all_normal(std::uint32_t a, std::uint32_t b) {
    constexpr std::uint32_t up = (0x80u - ((1u << mantissa) + 1)) * 0x01010101u;  // carry to bit 7
    const std::uint32_t sums = ((a & 0x7F7F7F7Fu) + up) & ((b & 0x7F7F7F7Fu) + up);
    return (sums & 0x80808080u) == 0x80808080u;
  }

  /// words: the random words of the vector, Field / 4 of them. Only the top K bits of each field
  /// are set.
  template <format_id From, class Factors>
  __device__ __forceinline__ static uint2 codes(const vector8<From>& x, const Factors& factors,
                                                const std::uint32_t* words) {
    const auto scaled = [&](int k) {
      return __fmul_rn(element<From>(x, k), __uint_as_float(factors.of(k).factor));
    };
    const uint2 codes = fp8_vector<To>([&](int k) {
      return by_integers(__float_as_uint(scaled(k)), words[k / fields], k % fields);
    });
    if (all_normal(codes.x, codes.y)) return codes;
    return fp8_vector<To>(
        [&](int k) { return by_adder(scaled(k), words[k / fields], k % fields); });
  }
};

/// The random words of a thread's vectors, row after row: Philox blocks of contract §3.
template <int Field>
class vector_words {
 public:
  static constexpr int words = Field / 4;  // random words of a vector
  static constexpr int rows_at_once = Field == 8 ? 2 : 1;

  /// index: the random index of the thread's first element. index and t.pitch must be multiples of
  /// 8. With 8-bit fields t.pitch, and index in even lanes, must be multiples of 16.
  __device__ __forceinline__ vector_words(const tile_task& t, std::uint64_t index)
      : random_(t.random), odd_(threadIdx.x % 2), step_(t.pitch / fields) {
    if constexpr (Field == 8) index += odd_ * (t.pitch - vector_length);
    block_ = index / fields;
    const int spare = Field - t.random.k;
    const std::uint32_t low = (std::uint32_t{1} << spare) - 1;  // K >= 1, so spare < 32
    keep_ = ~(Field == 8 ? low * 0x01010101u : Field == 16 ? low * 0x00010001u : low);
  }

  /// Computes the random words of the next rows_at_once rows. All lanes of the warp must call.
  __device__ __forceinline__ void draw(std::uint32_t (&w)[rows_at_once][words]) {
    if constexpr (Field == 8) {
      // A Philox block holds the fields of 16 elements: the vectors of two neighbouring lanes. The
      // even lane computes the block of the first row, the odd lane computes the block of the
      // second row. Then each lane sends the partner's half. Words are chosen by masks, because a
      // branch would split the warp.
      const std::uint32_t mask = 0u - odd_;
      const auto choose = [mask](std::uint32_t even_one, std::uint32_t odd_one) {
        return (even_one & ~mask) | (odd_one & mask);
      };
      const auto block = numerics::philox4x32_10(random_.keys, random_.stream, wrapped(block_));
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        const std::uint32_t mine = choose(block.word[k], block.word[2 + k]);
        const std::uint32_t got =
            __shfl_xor_sync(all_lanes, choose(block.word[2 + k], block.word[k]), 1);
        w[0][k] = choose(mine, got) & keep_;
        w[1][k] = choose(got, mine) & keep_;
      }
    } else {
#pragma unroll
      for (int b = 0; b < words / 4; ++b) {
        const auto block =
            numerics::philox4x32_10(random_.keys, random_.stream, wrapped(block_ + b));
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          std::uint32_t& word = w[0][4 * b + k];
          word = block.word[k] & keep_;
          // Hides how the word was computed. Otherwise nvcc may keep fewer registers and compute
          // the block a second time in codes(), where by_adder() uses it.
          asm volatile("" : "+r"(word));
        }
      }
    }
    block_ += rows_at_once * step_;
  }

 private:
  static constexpr int fields = 128 / Field;  // random fields in a Philox block

  /// Random indices are modulo 2^64, so block numbers are modulo 2^64 / fields.
  __device__ __forceinline__ static std::uint64_t wrapped(std::uint64_t block) {
    return block & (~std::uint64_t{0} / fields);
  }

  const random_source& random_;
  unsigned odd_;
  std::uint32_t keep_;
  std::uint64_t block_, step_;
};

}  // namespace samebits::cuda
