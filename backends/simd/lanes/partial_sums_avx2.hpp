// Four partial sums of the sum tree in an AVX2 register.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "backends/simd/lanes/lanes_avx2.hpp"
#include "numerics/bits/decode.hpp"
#include "samebits/core/format.hpp"

namespace samebits::avx2 {

/// The instruction set policy of the sum tree: `partial_sums` is a register of consecutive binary64
/// partial sums, in order.
struct partial_sums_isa {
  using lanes_isa = isa;
  using partial_sums = __m256d;
  static constexpr int count = 4;

  /// Loads four elements as binary64; exact.
  template <format_id F>
  SAMEBITS_INLINE static partial_sums load_elements(const std::byte* p) {
    if constexpr (F == format_id::fp32) {
      return _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(p)));
    } else {
      const __m128i codes =
          _mm_cvtepu16_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
      if constexpr (F == format_id::bf16) {
        return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(codes, 16)));
      }
      const auto words = numerics::decode<lanes>(spec_of(F), _mm256_castsi128_si256(codes));
      return _mm256_cvtps_pd(_mm_castsi128_ps(_mm256_castsi256_si128(words.v)));
    }
  }
  SAMEBITS_INLINE static partial_sums zero() { return _mm256_setzero_pd(); }
  SAMEBITS_INLINE static void store(double* p, partial_sums v) { _mm256_storeu_pd(p, v); }

  /// x * x + y * y. The squares of elements are exact in binary64.
  SAMEBITS_INLINE static partial_sums sum_of_squares(partial_sums x, partial_sums y) {
    return _mm256_add_pd(_mm256_mul_pd(x, x), _mm256_mul_pd(y, y));
  }
  SAMEBITS_INLINE static partial_sums sum(partial_sums x, partial_sums y) {
    return _mm256_add_pd(x, y);
  }
  SAMEBITS_INLINE static partial_sums difference(partial_sums x, partial_sums y) {
    return _mm256_sub_pd(x, y);
  }
  /// x * x, rounded: a difference of two elements may have more than 24 bits.
  SAMEBITS_INLINE static partial_sums square(partial_sums x) { return _mm256_mul_pd(x, x); }

  /// Combines four registers of partial sums to one register, two tree levels up. join(even, odd)
  /// combines the lower level; the upper level is a sum.
  ///
  ///   v[0], v[1]   0 1 2 3, 4 5 6 7     unpacked to 0 4 2 6 and 1 5 3 7
  ///   level 1      0 2 | 1 3            neighbours are in different 128-bit lanes
  ///   level 2      0 1 | 2 3            in order
  template <class Combine>
  SAMEBITS_INLINE static partial_sums fold(const partial_sums* v, const Combine& combine) {
    const partial_sums x = combine(_mm256_unpacklo_pd(v[0], v[1]), _mm256_unpackhi_pd(v[0], v[1]));
    const partial_sums y = combine(_mm256_unpacklo_pd(v[2], v[3]), _mm256_unpackhi_pd(v[2], v[3]));
    return sum(_mm256_permute2f128_pd(x, y, 0x20), _mm256_permute2f128_pd(x, y, 0x31));
  }
};

}  // namespace samebits::avx2
