// Arithmetic on AVX-512: converts codes to binary32 lanes and back, and computes with explicit
// rounding.
//
// docs/decisions/0021-arithmetic-by-the-processor.md proves that the results equal the definition's.
// Everything here is a template or inlined; see convert_kernel.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "backends/simd/arithmetic/arithmetic_rule.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace samebits::avx512 {

inline constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
inline constexpr int up = _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC;
inline constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

/// Two registers of 16-bit codes from one register of 8-bit codes, each code in the top byte; and
/// the inverse from the bottom bytes. The order of elements is that of the unpack and pack
/// instructions, which are inverse to each other.
struct byte_pairs {
  __m512i low, high;
};
SAMEBITS_INLINE byte_pairs spread_bytes(__m512i codes) {
  const __m512i zero = _mm512_setzero_si512();
  return {_mm512_unpacklo_epi8(zero, codes), _mm512_unpackhi_epi8(zero, codes)};
}

/// 32 binary32 values from 32 binary16 codes, independent of every control register; and back.
struct value_pair {
  __m512 low, high;
};
SAMEBITS_INLINE value_pair from_halves(__m512i h) {
  return {_mm512_cvtph_ps(_mm512_castsi512_si256(h)),
          _mm512_cvtph_ps(_mm512_extracti64x4_epi64(h, 1))};
}
template <int Direction>
SAMEBITS_INLINE __m512i to_halves(const value_pair& x) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtps_ph(x.low, Direction)),
                            _mm512_cvtps_ph(x.high, Direction), 1);
}
/// Rounds to odd: of the two neighbours of a value, selects the one whose last bit is 1. For an
/// exact value both are equal.
SAMEBITS_INLINE __m512i to_halves_odd(const value_pair& x) {
  const __m512i below = to_halves<down>(x);
  const __m512i above = to_halves<up>(x);
  return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(below, _mm512_set1_epi16(1)), above, below);
}

/// Rounds magnitudes to their top 16 - Drop bits, to nearest even.
template <int Drop>
SAMEBITS_INLINE __m512i round_off(__m512i magnitude) {
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi16(magnitude, Drop), _mm512_set1_epi16(1));
  const __m512i half = _mm512_set1_epi16((1 << (Drop - 1)) - 1);
  return _mm512_srli_epi16(_mm512_add_epi16(_mm512_add_epi16(magnitude, half), odd), Drop);
}

/// The operations of AVX-512 on registers of codes, for backends/simd/arithmetic/arithmetic_kernel.hpp.
struct registers {
  static constexpr simd::fused_steps steps = simd::fused_steps::directed;
  static constexpr int register_bytes = isa::register_bytes;

  /// The values of a register of codes as binary32 lanes. e4m3 values are multiplied by 2^-8: as
  /// binary16 numbers they then have the exponent field of the e4m3 code.
  template <format_id F>
  struct values {
    static constexpr int words = 32 / spec_of(F).storage_bits;
    __m512 of[static_cast<std::size_t>(words)];
    __mmask64 nans = 0;  ///< e4m3 only: elements that are NaN; their lanes are unspecified
  };

  template <format_id F>
  SAMEBITS_INLINE static values<F> widen(const std::byte* p) {
    const __m512i codes = _mm512_loadu_si512(p);
    if constexpr (F == format_id::fp32) {
      return {{_mm512_castsi512_ps(codes)}};
    } else if constexpr (F == format_id::bf16) {
      const __m512i zero = _mm512_setzero_si512();
      return {{_mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, codes)),
               _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, codes))}};
    } else if constexpr (F == format_id::fp16) {
      const value_pair x = from_halves(codes);
      return {{x.low, x.high}};
    } else {
      byte_pairs h = spread_bytes(codes);
      __mmask64 nans = 0;
      if constexpr (F == format_id::e4m3) {
        h = {e4m3_half(h.low), e4m3_half(h.high)};
        const __m512i negative = _mm512_or_si512(codes, _mm512_set1_epi8(-128));
        nans = _mm512_cmpeq_epu8_mask(negative, _mm512_set1_epi8(-1));
      }
      const value_pair x = from_halves(h.low);
      const value_pair y = from_halves(h.high);
      return {{x.low, x.high, y.low, y.high}, nans};
    }
  }

  template <operation Op, format_id F>
  SAMEBITS_INLINE static values<F> apply(const values<F>& a, const values<F>& b,
                                         const values<F>& c) {
    values<F> result;
    for (int i = 0; i < values<F>::words; ++i) {
      if constexpr (F == format_id::e4m3) {
        result.of[i] = scaled_step<Op>(a.of[i], b.of[i], c.of[i]);
      } else if constexpr (Op == operation::fma && F != format_id::fp32) {
        result.of[i] = fused_to_odd(a.of[i], b.of[i], c.of[i]);
      } else {
        result.of[i] = step<Op>(a.of[i], b.of[i], c.of[i]);
      }
    }
    if constexpr (F == format_id::e4m3) result.nans = a.nans | b.nans | c.nans;
    return result;
  }

  /// Rounds the results of an operation to one register of codes.
  template <operation Op, format_id F, overflow Policy>
  SAMEBITS_INLINE static __m512i narrow(const values<F>& x) {
    if constexpr (F == format_id::fp32) {
      return narrow_binary32<Policy>(_mm512_castps_si512(x.of[0]));
    } else if constexpr (F == format_id::bf16) {
      return canonical_words<F, Policy>(
          _mm512_packus_epi32(top_words(x.of[0]), top_words(x.of[1])));
    } else if constexpr (F == format_id::fp16) {
      return canonical_words<F, Policy>(to_halves<nearest>({x.of[0], x.of[1]}));
    } else {
      const __m512i codes =
          _mm512_packus_epi16(narrow_half<F, Policy>(halves_of<Op>({x.of[0], x.of[1]})),
                              narrow_half<F, Policy>(halves_of<Op>({x.of[2], x.of[3]})));
      if constexpr (F != format_id::e4m3) return codes;
      return _mm512_mask_mov_epi8(codes, x.nans, _mm512_set1_epi8(0x7F));
    }
  }

  SAMEBITS_INLINE static void stream(std::byte* p, __m512i x) { isa::stream(p, x); }
  SAMEBITS_INLINE static void store(std::byte* p, __m512i x) { isa::store_register(p, x); }
  SAMEBITS_INLINE static void stream_fence() { isa::stream_fence(); }

 private:
  template <operation Op>
  SAMEBITS_INLINE static __m512 step(__m512 a, __m512 b, __m512 c) {
    if constexpr (Op == operation::add) return _mm512_add_round_ps(a, b, nearest);
    if constexpr (Op == operation::sub) return _mm512_sub_round_ps(a, b, nearest);
    if constexpr (Op == operation::mul) return _mm512_mul_round_ps(a, b, nearest);
    if constexpr (Op == operation::div) return _mm512_div_round_ps(a, b, nearest);
    if constexpr (Op == operation::sqrt) return _mm512_sqrt_round_ps(a, nearest);
    if constexpr (Op == operation::fma) return _mm512_fmadd_round_ps(a, b, c, nearest);
  }

  /// a * b + c rounded to odd. An exact zero is even in both directions; `above` then has the sign
  /// that rounding to nearest gives.
  SAMEBITS_INLINE static __m512 fused_to_odd(__m512 a, __m512 b, __m512 c) {
    const __m512 below = _mm512_fmadd_round_ps(a, b, c, down);
    const __m512 above = _mm512_fmadd_round_ps(a, b, c, up);
    const __mmask16 odd = _mm512_test_epi32_mask(_mm512_castps_si512(below), _mm512_set1_epi32(1));
    return _mm512_mask_blend_ps(odd, above, below);
  }

  /// Computes on operands that are multiplied by 2^-8, for a result multiplied by 2^-8. To correct
  /// the factor of the result, one operand is multiplied by 2^8 or 2^-8, exactly.
  template <operation Op>
  SAMEBITS_INLINE static __m512 scaled_step(__m512 a, __m512 b, __m512 c) {
    const __m512 more = _mm512_set1_ps(0x1p8f);
    const __m512 less = _mm512_set1_ps(0x1p-8f);
    if constexpr (Op == operation::mul) return step<Op>(step<operation::mul>(a, more, c), b, c);
    if constexpr (Op == operation::fma) return step<Op>(step<operation::mul>(a, more, c), b, c);
    if constexpr (Op == operation::div) return step<Op>(a, step<operation::mul>(b, more, c), c);
    if constexpr (Op == operation::sqrt) return step<Op>(step<operation::mul>(a, less, c), b, c);
    return step<Op>(a, b, c);
  }

  /// Converts e4m3 codes in the top bytes to binary16 codes of the value times 2^-8: the sign,
  /// exponent field and mantissa stay. 7F and FF become finite numbers.
  SAMEBITS_INLINE static __m512i e4m3_half(__m512i top) {
    const __m512i sign_and_magnitude = _mm512_set1_epi16(static_cast<short>(0xBFFF));
    return _mm512_and_si512(_mm512_srai_epi16(top, 1), sign_and_magnitude);
  }

  template <operation Op>
  SAMEBITS_INLINE static __m512i halves_of(const value_pair& x) {
    return Op == operation::fma ? to_halves_odd(x) : to_halves<nearest>(x);
  }

  /// Rounds binary16 codes to e4m3 or e5m2 codes in the low bytes.
  template <format_id F, overflow Policy>
  SAMEBITS_INLINE static __m512i narrow_half(__m512i h) {
    constexpr int drop = F == format_id::e4m3 ? 7 : 8;
    constexpr short max = F == format_id::e4m3 ? 0x7E : 0x7B;
    const __m512i nan = _mm512_set1_epi16(0x7F);
    const __m512i magnitude = _mm512_and_si512(h, _mm512_set1_epi16(0x7FFF));
    const __m512i rounded = round_off<drop>(magnitude);
    if constexpr (F == format_id::e4m3 && Policy == overflow::ieee) {
      // All codes beyond max, including Inf and NaN, become NaN.
      const __mmask32 is_nan = _mm512_cmpgt_epu16_mask(rounded, _mm512_set1_epi16(max));
      return _mm512_mask_mov_epi16(with_sign(rounded, h), is_nan, nan);
    }
    __m512i code = rounded;
    if constexpr (Policy == overflow::saturate) {
      code = _mm512_min_epu16(code, _mm512_set1_epi16(max));
    }
    const __mmask32 is_nan = _mm512_cmpgt_epu16_mask(magnitude, _mm512_set1_epi16(0x7C00));
    return _mm512_mask_mov_epi16(with_sign(code, h), is_nan, nan);
  }

  /// code | (h >> 8 & 80): moves the sign of a binary16 code to the sign position of an 8-bit code.
  SAMEBITS_INLINE static __m512i with_sign(__m512i code, __m512i h) {
    constexpr int a_or_b_and_c = 0xF8;
    return _mm512_ternarylogic_epi32(code, _mm512_srli_epi16(h, 8), _mm512_set1_epi16(0x80),
                                     a_or_b_and_c);
  }

  /// The top halves of binary32 numbers, rounded to nearest even, in the low halves of the lanes. A
  /// NaN stays a NaN: its low half is 0, or it is the processor's default NaN.
  SAMEBITS_INLINE static __m512i top_words(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_set1_epi32(0x7FFF);
    return _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, half), odd), 16);
  }

  /// Applies the overflow policy to Inf and makes NaNs canonical, in 16-bit codes.
  template <format_id F, overflow Policy>
  SAMEBITS_INLINE static __m512i canonical_words(__m512i codes) {
    constexpr short inf = F == format_id::fp16 ? 0x7C00 : 0x7F80;
    const __m512i low_bits = _mm512_set1_epi16(0x7FFF);
    const __m512i magnitude = _mm512_and_si512(codes, low_bits);
    const __mmask32 is_nan = _mm512_cmpgt_epu16_mask(magnitude, _mm512_set1_epi16(inf));
    if constexpr (Policy == overflow::saturate) {
      const __m512i bounded = _mm512_min_epu16(magnitude, _mm512_set1_epi16(inf - 1));
      codes = _mm512_or_si512(bounded, _mm512_andnot_si512(low_bits, codes));
    }
    return _mm512_mask_mov_epi16(codes, is_nan, low_bits);
  }

  template <overflow Policy>
  SAMEBITS_INLINE static __m512i narrow_binary32(__m512i codes) {
    const __m512i low_bits = _mm512_set1_epi32(0x7FFFFFFF);
    const __m512i magnitude = _mm512_and_si512(codes, low_bits);
    const __mmask16 is_nan = _mm512_cmpgt_epu32_mask(magnitude, _mm512_set1_epi32(0x7F800000));
    if constexpr (Policy == overflow::saturate) {
      const __m512i bounded = _mm512_min_epu32(magnitude, _mm512_set1_epi32(0x7F7FFFFF));
      codes = _mm512_or_si512(bounded, _mm512_andnot_si512(low_bits, codes));
    }
    return _mm512_mask_mov_epi32(codes, is_nan, low_bits);
  }
};

}  // namespace samebits::avx512
