// Matrix products compiled for AVX2. This file must define nothing else.
#include <immintrin.h>

#include <cstdint>

#include "backends/simd/lanes/lanes_avx2.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "backends/simd/matmul/matmul_wide.hpp"
#include "samebits/core/config.hpp"

namespace samebits::backends {
namespace avx2 {
namespace {

/// The instruction set policy for matmul_wide.hpp.
struct matmul_isa : samebits::avx2::isa {
  using lanes = samebits::avx2::lanes;
  using mask = samebits::avx2::mask;
  struct reals {
    __m256d low, high;
  };

  /// The maximum of signed numbers.
  SAMEBITS_INLINE static lanes max(lanes a, lanes b) { return _mm256_max_epi32(a.v, b.v); }
  /// Products of the low 16 bits. The upper 16 bits of x must be zero.
  SAMEBITS_INLINE static lanes low_product(lanes x, lanes y) { return _mm256_madd_epi16(x.v, y.v); }
  /// Compares signed numbers.
  SAMEBITS_INLINE static mask greater(lanes a, lanes b) { return {_mm256_cmpgt_epi32(a.v, b.v)}; }
  SAMEBITS_INLINE static lanes negate_if(lanes sign, lanes x) {
    return _mm256_sign_epi32(x.v, (sign | lanes(1u)).v);
  }
  SAMEBITS_INLINE static reals to_reals(lanes x) {
    return {_mm256_cvtepi32_pd(_mm256_castsi256_si128(x.v)),
            _mm256_cvtepi32_pd(_mm256_extracti128_si256(x.v, 1))};
  }
  SAMEBITS_INLINE static reals add(const reals& a, const reals& b) {
    return {_mm256_add_pd(a.low, b.low), _mm256_add_pd(a.high, b.high)};
  }
  /// x * 2^exponent as binary32, truncated to fraction_bits fraction bits. Overflow gives Inf.
  SAMEBITS_INLINE static __m128 round_half(__m256d x, __m128i exponent, int fraction_bits) {
    const auto power = [](__m256i n) {  // 2^n
      return _mm256_castsi256_pd(
          _mm256_slli_epi64(_mm256_add_epi64(n, _mm256_set1_epi64x(1023)), 52));
    };
    x = _mm256_mul_pd(x, power(_mm256_cvtepi32_epi64(exponent)));
    // Normal numbers keep fraction_bits bits. Smaller numbers become multiples of the smallest
    // subnormal with this precision.
    const __m256i keep = _mm256_set1_epi64x(-(std::int64_t{1} << (52 - fraction_bits)));
    const __m256d normal = _mm256_and_pd(x, _mm256_castsi256_pd(keep));
    const __m256d up = power(_mm256_set1_epi64x(126 + fraction_bits));
    const __m256d down = power(_mm256_set1_epi64x(-126 - fraction_bits));
    const __m256d whole =
        _mm256_round_pd(_mm256_mul_pd(x, up), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m256d small = _mm256_mul_pd(whole, down);
    const __m256d magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    const __m256d is_small = _mm256_cmp_pd(magnitude, _mm256_set1_pd(0x1p-126), _CMP_LT_OQ);
    return _mm256_cvtpd_ps(_mm256_blendv_pd(normal, small, is_small));
  }
  SAMEBITS_INLINE static lanes round_sum(const reals& sum, lanes exponent, int fraction_bits) {
    const __m128 low = round_half(sum.low, _mm256_castsi256_si128(exponent.v), fraction_bits);
    const __m128 high =
        round_half(sum.high, _mm256_extracti128_si256(exponent.v, 1), fraction_bits);
    const __m256 both = _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
    return _mm256_castps_si256(_mm256_add_ps(both, _mm256_setzero_ps()));  // -0 becomes +0
  }
};

void promote(const matmul_promotion& p) {
  for (std::int64_t i = 0; i < p.rows * 8; i += 8) {
    const __m256 sum = _mm256_loadu_ps(reinterpret_cast<const float*>(p.sums + i));
    const __m256 part = _mm256_loadu_ps(reinterpret_cast<const float*>(p.parts + i));
    _mm256_storeu_ps(reinterpret_cast<float*>(p.sums + i), _mm256_add_ps(sum, part));
    _mm256_storeu_ps(reinterpret_cast<float*>(p.parts + i), _mm256_setzero_ps());
  }
}

}  // namespace
}  // namespace avx2

extern const matmul_kernel avx2_matmul_kernel = {8, simd::wide_step<avx2::matmul_isa>, nullptr,
                                                 avx2::promote, nullptr};

}  // namespace samebits::backends
