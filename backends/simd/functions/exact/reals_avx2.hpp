// Four binary64 numbers in an AVX2 register: the Word of numerics/functions/ with fused
// multiply-adds.
//
// MXCSR must have its IEEE 754 state. convert_kernel.hpp says what code may be used here.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx2 {

/// A mask: all ones or all zeros in each 64-bit lane.
struct real_mask {
  __m256i v;
};
SAMEBITS_INLINE real_mask operator&(real_mask a, real_mask b) {
  return {_mm256_and_si256(a.v, b.v)};
}
SAMEBITS_INLINE real_mask operator|(real_mask a, real_mask b) {
  return {_mm256_or_si256(a.v, b.v)};
}
SAMEBITS_INLINE real_mask operator!(real_mask a) {
  return {_mm256_xor_si256(a.v, _mm256_set1_epi64x(-1))};
}

/// Whether any lane is set.
SAMEBITS_INLINE bool any(real_mask m) { return _mm256_movemask_epi8(m.v) != 0; }

/// The bits of four binary64 numbers, one per lane.
struct reals {
  __m256i v;

  static constexpr int count = 4;

  reals() = default;
  SAMEBITS_INLINE reals(__m256i raw) : v(raw) {}  // NOLINT(google-explicit-constructor)
  SAMEBITS_INLINE reals(__m256d raw)              // NOLINT(google-explicit-constructor)
      : v(_mm256_castpd_si256(raw)) {}
  /// Broadcasts bits to every lane.
  SAMEBITS_INLINE reals(std::uint64_t x)  // NOLINT(google-explicit-constructor)
      : v(_mm256_set1_epi64x(static_cast<long long>(x))) {}

  /// The binary64 bits of four binary32 numbers, one per 32-bit word.
  SAMEBITS_INLINE static reals load_binary32(const std::uint32_t* words) {
    return _mm256_cvtps_pd(
        _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words))));
  }
  /// The number rounded to binary32, to nearest even. A NaN may have any NaN code.
  SAMEBITS_INLINE static reals through_binary32(reals a) {
    return _mm256_cvtps_pd(_mm256_cvtpd_ps(_mm256_castsi256_pd(a.v)));
  }
  /// The binary32 bits, in the low half of each lane, of numbers rounded to nearest even.
  SAMEBITS_INLINE static reals binary32_bits(reals a) {
    return _mm256_cvtepu32_epi64(_mm_castps_si128(_mm256_cvtpd_ps(_mm256_castsi256_pd(a.v))));
  }
  SAMEBITS_INLINE static reals load_bits(const std::uint64_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  SAMEBITS_INLINE static void store_bits(std::uint64_t* p, reals a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.v);
  }
  /// Stores the low 32 bits of each lane, one per word.
  SAMEBITS_INLINE static void store_words(std::uint32_t* p, reals a) {
    const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                     _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(a.v, order)));
  }
};
SAMEBITS_INLINE __m256d numbers(reals a) { return _mm256_castsi256_pd(a.v); }

SAMEBITS_INLINE reals operator+(reals a, reals b) { return _mm256_add_epi64(a.v, b.v); }
SAMEBITS_INLINE reals operator-(reals a, reals b) { return _mm256_sub_epi64(a.v, b.v); }
SAMEBITS_INLINE reals operator&(reals a, reals b) { return _mm256_and_si256(a.v, b.v); }
SAMEBITS_INLINE reals operator|(reals a, reals b) { return _mm256_or_si256(a.v, b.v); }
SAMEBITS_INLINE reals operator<<(reals a, reals n) { return _mm256_sllv_epi64(a.v, n.v); }
SAMEBITS_INLINE reals operator>>(reals a, reals n) { return _mm256_srlv_epi64(a.v, n.v); }
SAMEBITS_INLINE reals operator<<(reals a, std::uint64_t n) {
  return _mm256_slli_epi64(a.v, static_cast<int>(n));
}
SAMEBITS_INLINE reals operator>>(reals a, std::uint64_t n) {
  return _mm256_srli_epi64(a.v, static_cast<int>(n));
}

SAMEBITS_INLINE real_mask operator==(reals a, reals b) { return {_mm256_cmpeq_epi64(a.v, b.v)}; }
SAMEBITS_INLINE real_mask operator!=(reals a, reals b) { return !(a == b); }
/// Unsigned comparison, built on AVX2's signed comparison.
SAMEBITS_INLINE real_mask operator>(reals a, reals b) {
  const __m256i flip = _mm256_set1_epi64x(INT64_MIN);
  return {_mm256_cmpgt_epi64(_mm256_xor_si256(a.v, flip), _mm256_xor_si256(b.v, flip))};
}
SAMEBITS_INLINE real_mask operator<(reals a, reals b) { return b > a; }
SAMEBITS_INLINE reals select(real_mask m, reals a, reals b) {
  return _mm256_blendv_epi8(b.v, a.v, m.v);
}

// Steps of numerics/functions/binary64_steps.hpp.
SAMEBITS_INLINE reals fma(reals a, reals b, reals c) {
  return _mm256_fmadd_pd(numbers(a), numbers(b), numbers(c));
}
SAMEBITS_INLINE reals add(reals a, reals b) { return _mm256_add_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals sub(reals a, reals b) { return _mm256_sub_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals mul(reals a, reals b) { return _mm256_mul_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals div(reals a, reals b) { return _mm256_div_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals sqrt(reals a) { return _mm256_sqrt_pd(numbers(a)); }
SAMEBITS_INLINE reals neg(reals a) { return _mm256_xor_si256(a.v, _mm256_set1_epi64x(INT64_MIN)); }
SAMEBITS_INLINE real_mask lt(reals a, reals b) {
  return {_mm256_castpd_si256(_mm256_cmp_pd(numbers(a), numbers(b), _CMP_LT_OQ))};
}

}  // namespace samebits::avx2

namespace samebits::numerics {
template <>
struct word_traits<avx2::reals> {
  using mask = avx2::real_mask;
  using element = std::uint64_t;
};
}  // namespace samebits::numerics
