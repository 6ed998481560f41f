// Eight binary64 numbers in an AVX-512 register: the Word of numerics/functions/.
//
// MXCSR must have its IEEE 754 state. convert_kernel.hpp says what code may be used here.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx512 {

/// A mask: one bit per 64-bit lane.
struct real_mask {
  __mmask8 bits;
};
SAMEBITS_INLINE real_mask operator&(real_mask a, real_mask b) {
  return {static_cast<__mmask8>(a.bits & b.bits)};
}
SAMEBITS_INLINE real_mask operator|(real_mask a, real_mask b) {
  return {static_cast<__mmask8>(a.bits | b.bits)};
}
SAMEBITS_INLINE real_mask operator!(real_mask a) { return {static_cast<__mmask8>(~a.bits)}; }

/// Whether any lane is set.
SAMEBITS_INLINE bool any(real_mask m) { return m.bits != 0; }

/// The bits of eight binary64 numbers, one per lane.
struct reals {
  __m512i v;

  static constexpr int count = 8;

  reals() = default;
  SAMEBITS_INLINE reals(__m512i raw) : v(raw) {}  // NOLINT(google-explicit-constructor)
  SAMEBITS_INLINE reals(__m512d raw)              // NOLINT(google-explicit-constructor)
      : v(_mm512_castpd_si512(raw)) {}
  /// Broadcasts bits to every lane.
  SAMEBITS_INLINE reals(std::uint64_t x)  // NOLINT(google-explicit-constructor)
      : v(_mm512_set1_epi64(static_cast<long long>(x))) {}

  /// The binary64 bits of eight binary32 numbers, one per 32-bit word.
  SAMEBITS_INLINE static reals load_binary32(const std::uint32_t* words) {
    return _mm512_cvtps_pd(
        _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words))));
  }
  /// The number rounded to binary32, to nearest even. A NaN may have any NaN code.
  SAMEBITS_INLINE static reals through_binary32(reals a) {
    return _mm512_cvtps_pd(_mm512_cvtpd_ps(_mm512_castsi512_pd(a.v)));
  }
  /// The binary32 bits, in the low half of each lane, of numbers rounded to nearest even.
  SAMEBITS_INLINE static reals binary32_bits(reals a) {
    return _mm512_cvtepu32_epi64(_mm256_castps_si256(_mm512_cvtpd_ps(_mm512_castsi512_pd(a.v))));
  }
  SAMEBITS_INLINE static reals load_bits(const std::uint64_t* p) { return _mm512_loadu_si512(p); }
  SAMEBITS_INLINE static void store_bits(std::uint64_t* p, reals a) { _mm512_storeu_si512(p, a.v); }
  /// Stores the low 32 bits of each lane, one per word.
  SAMEBITS_INLINE static void store_words(std::uint32_t* p, reals a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi64_epi32(a.v));
  }
};
SAMEBITS_INLINE __m512d numbers(reals a) { return _mm512_castsi512_pd(a.v); }

SAMEBITS_INLINE reals operator+(reals a, reals b) { return _mm512_add_epi64(a.v, b.v); }
SAMEBITS_INLINE reals operator-(reals a, reals b) { return _mm512_sub_epi64(a.v, b.v); }
SAMEBITS_INLINE reals operator&(reals a, reals b) { return _mm512_and_si512(a.v, b.v); }
SAMEBITS_INLINE reals operator|(reals a, reals b) { return _mm512_or_si512(a.v, b.v); }
SAMEBITS_INLINE reals operator<<(reals a, reals n) { return _mm512_sllv_epi64(a.v, n.v); }
SAMEBITS_INLINE reals operator>>(reals a, reals n) { return _mm512_srlv_epi64(a.v, n.v); }
SAMEBITS_INLINE reals operator<<(reals a, std::uint64_t n) {
  return _mm512_slli_epi64(a.v, static_cast<unsigned>(n));
}
SAMEBITS_INLINE reals operator>>(reals a, std::uint64_t n) {
  return _mm512_srli_epi64(a.v, static_cast<unsigned>(n));
}

SAMEBITS_INLINE real_mask operator==(reals a, reals b) {
  return {_mm512_cmpeq_epu64_mask(a.v, b.v)};
}
SAMEBITS_INLINE real_mask operator!=(reals a, reals b) {
  return {_mm512_cmpneq_epu64_mask(a.v, b.v)};
}
SAMEBITS_INLINE real_mask operator<(reals a, reals b) {
  return {_mm512_cmplt_epu64_mask(a.v, b.v)};
}
SAMEBITS_INLINE real_mask operator>(reals a, reals b) {
  return {_mm512_cmpgt_epu64_mask(a.v, b.v)};
}
SAMEBITS_INLINE reals select(real_mask m, reals a, reals b) {
  return _mm512_mask_blend_epi64(m.bits, b.v, a.v);
}

// Steps of numerics/functions/binary64_steps.hpp.
SAMEBITS_INLINE reals fma(reals a, reals b, reals c) {
  return _mm512_fmadd_pd(numbers(a), numbers(b), numbers(c));
}
SAMEBITS_INLINE reals add(reals a, reals b) { return _mm512_add_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals sub(reals a, reals b) { return _mm512_sub_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals mul(reals a, reals b) { return _mm512_mul_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals div(reals a, reals b) { return _mm512_div_pd(numbers(a), numbers(b)); }
SAMEBITS_INLINE reals sqrt(reals a) { return _mm512_sqrt_pd(numbers(a)); }
SAMEBITS_INLINE reals neg(reals a) { return _mm512_xor_si512(a.v, _mm512_set1_epi64(INT64_MIN)); }
SAMEBITS_INLINE real_mask lt(reals a, reals b) {
  return {_mm512_cmp_pd_mask(numbers(a), numbers(b), _CMP_LT_OQ)};
}

}  // namespace samebits::avx512

namespace samebits::numerics {
template <>
struct word_traits<avx512::reals> {
  using mask = avx512::real_mask;
  using element = std::uint64_t;
};
}  // namespace samebits::numerics
