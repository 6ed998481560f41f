// Eight partial sums of the sum tree in an AVX-512 register.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "backends/simd/lanes/lanes_avx512.hpp"
#include "samebits/core/format.hpp"

namespace samebits::avx512 {

/// The instruction set policy of the sum tree: `partial_sums` is a register of consecutive binary64
/// partial sums, in order.
struct partial_sums_isa {
  using lanes_isa = isa;
  using partial_sums = __m512d;
  static constexpr int count = 8;

  /// Loads eight elements as binary64; exact.
  template <format_id F>
  SAMEBITS_INLINE static partial_sums load_elements(const std::byte* p) {
    if constexpr (F == format_id::fp32) {
      return _mm512_cvtps_pd(_mm256_loadu_ps(reinterpret_cast<const float*>(p)));
    } else {
      const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      // The AVX-512 form of this instruction; the plain form needs F16C.
      if constexpr (F == format_id::fp16) {
        return _mm512_cvtps_pd(_mm256_maskz_cvtph_ps(0xFF, codes));
      }
      const __m256i words = _mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16);
      return _mm512_cvtps_pd(_mm256_castsi256_ps(words));
    }
  }
  SAMEBITS_INLINE static partial_sums zero() { return _mm512_setzero_pd(); }
  SAMEBITS_INLINE static void store(double* p, partial_sums v) { _mm512_storeu_pd(p, v); }

  /// x * x + y * y of elements. Squares of at most 24 bits are exact in binary64, so the fma rounds
  /// like a sum of two squares.
  SAMEBITS_INLINE static partial_sums sum_of_squares(partial_sums x, partial_sums y) {
    return _mm512_fmadd_pd(x, x, _mm512_mul_pd(y, y));
  }
  SAMEBITS_INLINE static partial_sums sum(partial_sums x, partial_sums y) {
    return _mm512_add_pd(x, y);
  }
  SAMEBITS_INLINE static partial_sums difference(partial_sums x, partial_sums y) {
    return _mm512_sub_pd(x, y);
  }
  /// x * x, rounded: a difference of two elements may have more than 24 bits.
  SAMEBITS_INLINE static partial_sums square(partial_sums x) { return _mm512_mul_pd(x, x); }

  /// Combines eight registers of partial sums to one register, three tree levels up. join(even,
  /// odd) combines the lowest level; the other levels are sums.
  ///
  ///   v[0], v[1]   0 1 2 3 4 5 6 7, 8 ...   unpacked to 0 8 2 10 .. and 1 9 3 11 ..
  ///   level 1      0 4 | 1 5 | 2 6 | 3 7    neighbours are 128-bit lanes: 0 and 1, 2 and 3
  ///   level 2      0 2 | 1 3 | 4 6 | 5 7    neighbours are 128-bit lanes
  ///   level 3      0 1 | 2 3 | 4 5 | 6 7    in order
  template <class Combine>
  SAMEBITS_INLINE static partial_sums fold(const partial_sums* v, const Combine& combine) {
    const partial_sums a =
        combine_parts(combine_pairs(v[0], v[1], combine), combine_pairs(v[2], v[3], combine));
    const partial_sums b =
        combine_parts(combine_pairs(v[4], v[5], combine), combine_pairs(v[6], v[7], combine));
    return combine_parts(a, b);
  }

 private:
  template <class Combine>
  SAMEBITS_INLINE static partial_sums combine_pairs(partial_sums x, partial_sums y,
                                                    const Combine& combine) {
    return combine(_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y));
  }
  SAMEBITS_INLINE static partial_sums combine_parts(partial_sums x, partial_sums y) {
    return sum(_mm512_shuffle_f64x2(x, y, _MM_SHUFFLE(2, 0, 2, 0)),
               _mm512_shuffle_f64x2(x, y, _MM_SHUFFLE(3, 1, 3, 1)));
  }
};

}  // namespace samebits::avx512
