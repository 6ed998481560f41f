// Matrix products compiled for AVX-512. This file must define nothing else.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/simd/lanes/lanes_avx512.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "backends/simd/matmul/matmul_wide.hpp"

namespace samebits::backends {
namespace avx512 {
namespace {

/// The instruction set policy for matmul_wide.hpp.
struct matmul_isa : samebits::avx512::isa {
  using lanes = samebits::avx512::lanes;
  using mask = samebits::avx512::mask;
  struct reals {
    __m512d low, high;
  };

  /// The maximum of signed numbers.
  SAMEBITS_INLINE static lanes max(lanes a, lanes b) { return _mm512_max_epi32(a.v, b.v); }
  /// Products of the low 16 bits. The upper 16 bits of x must be zero.
  SAMEBITS_INLINE static lanes low_product(lanes x, lanes y) { return _mm512_madd_epi16(x.v, y.v); }
  /// Compares signed numbers.
  SAMEBITS_INLINE static mask greater(lanes a, lanes b) {
    return {_mm512_cmpgt_epi32_mask(a.v, b.v)};
  }
  SAMEBITS_INLINE static lanes negate_if(lanes sign, lanes x) {
    return _mm512_mask_sub_epi32(x.v, _mm512_movepi32_mask(sign.v), _mm512_setzero_si512(), x.v);
  }
  SAMEBITS_INLINE static reals to_reals(lanes x) {
    return {_mm512_cvtepi32_pd(_mm512_castsi512_si256(x.v)),
            _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(x.v, 1))};
  }
  SAMEBITS_INLINE static reals add(const reals& a, const reals& b) {
    return {_mm512_add_pd(a.low, b.low), _mm512_add_pd(a.high, b.high)};
  }
  /// x * 2^exponent as binary32, truncated to fraction_bits fraction bits. Overflow gives Inf.
  SAMEBITS_INLINE static __m256 round_half(__m512d x, __m256i exponent, int fraction_bits) {
    x = _mm512_scalef_pd(x, _mm512_cvtepi32_pd(exponent));
    // Normal numbers keep fraction_bits bits. Smaller numbers become multiples of the smallest
    // subnormal with this precision.
    const __m512i keep = _mm512_set1_epi64(-(std::int64_t{1} << (52 - fraction_bits)));
    const __m512d normal = _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), keep));
    const __m512d steps = _mm512_set1_pd(126 + fraction_bits);
    const __m512d whole =
        _mm512_roundscale_pd(_mm512_scalef_pd(x, steps), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m512d small = _mm512_scalef_pd(whole, _mm512_sub_pd(_mm512_setzero_pd(), steps));
    const __mmask8 is_small =
        _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(0x1p-126), _CMP_LT_OQ);
    return _mm512_cvtpd_ps(_mm512_mask_blend_pd(is_small, normal, small));
  }
  SAMEBITS_INLINE static lanes round_sum(const reals& sum, lanes exponent, int fraction_bits) {
    const __m256 low = round_half(sum.low, _mm512_castsi512_si256(exponent.v), fraction_bits);
    const __m256 high =
        round_half(sum.high, _mm512_extracti64x4_epi64(exponent.v, 1), fraction_bits);
    const __m512 both = _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
    return _mm512_castps_si512(_mm512_add_ps(both, _mm512_setzero_ps()));  // -0 becomes +0
  }
};

/// One row of a step on 16-bit lanes: Group products (32 or 16), two in each 32-bit lane.
template <int Group>
SAMEBITS_INLINE void narrow_row(const matmul_step& s, const std::uint32_t* a,
                                const std::uint32_t* b, std::uint32_t* sums) {
  constexpr int pairs = Group / 2;
  constexpr std::ptrdiff_t columns = 16;
  const auto set = [](int x) { return _mm512_set1_epi32(x); };
  const auto broadcast = [&](std::uint32_t x) { return set(static_cast<int>(x)); };
  const __m512i c = _mm512_loadu_si512(sums);
  const __m512i c_magnitude = _mm512_and_si512(c, set(0x7FFFFFFF));
  const __m512i c_field = _mm512_srli_epi32(c_magnitude, 23);
  const __m512i c_fraction = _mm512_and_si512(c, set(0x007FFFFF));
  const __m512i c_significand = _mm512_mask_or_epi32(
      c_fraction, _mm512_test_epi32_mask(c_field, c_field), c_fraction, set(0x00800000));
  const __m512i c_exponent =
      _mm512_mask_sub_epi32(set(2 * no_exponent), _mm512_test_epi32_mask(c_magnitude, c_magnitude),
                            _mm512_max_epi32(c_field, set(1)), set(127));
  __m512i top = _mm512_max_epi32(c_exponent, set(s.floor));
  top = _mm512_or_si512(_mm512_and_si512(top, set(0xFFFF)), _mm512_slli_epi32(top, 16));
  __m512i exponents[static_cast<unsigned>(pairs)];
#pragma GCC unroll 16
  for (int p = 0; p < pairs; ++p) {
    exponents[p] = _mm512_add_epi16(_mm512_loadu_si512(b + 3 * p * columns), broadcast(a[p]));
    top = _mm512_max_epi16(top, exponents[p]);
  }
  top = _mm512_max_epi16(top, _mm512_rol_epi32(top, 16));
  __m512i sum = _mm512_setzero_si512();
#pragma GCC unroll 16
  for (int p = 0; p < pairs; ++p) {
    const __m512i product =
        _mm512_mullo_epi16(_mm512_loadu_si512(b + (3 * p + 1) * columns), broadcast(a[pairs + p]));
    const __m512i cut = _mm512_srlv_epi16(product, _mm512_sub_epi16(top, exponents[p]));
    // (sign of a ^ sign of b) | 1: -1 or 1
    const __m512i sign =
        _mm512_ternarylogic_epi32(_mm512_loadu_si512(b + (3 * p + 2) * columns),
                                  broadcast(a[2 * pairs + p]), _mm512_set1_epi16(1), 0xBE);
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(cut, sign));
  }
  const __m512i top32 = _mm512_srai_epi32(top, 16);
  constexpr int down = 23 - 13;
  const __m512i c_term = _mm512_srlv_epi32(
      c_significand, _mm512_add_epi32(_mm512_sub_epi32(top32, c_exponent), set(down)));
  sum = _mm512_add_epi32(sum, matmul_isa::negate_if(c, c_term).v);
  // The sum is below 2^24 and therefore exact in binary32; it is then truncated to 13 fraction
  // bits.
  const __m512i cut_sum =
      _mm512_and_si512(_mm512_castps_si512(_mm512_cvtepi32_ps(sum)), set(-(1 << down)));
  const __m512 exponent = _mm512_cvtepi32_ps(_mm512_sub_epi32(top32, set(13)));
  _mm512_storeu_ps(sums, _mm512_scalef_ps(_mm512_castsi512_ps(cut_sum), exponent));
}

void narrow_step(const matmul_step& s) {
  for (std::int64_t r = 0; r < s.rows; ++r) {
    if (s.group == 32) {
      narrow_row<32>(s, s.a + r * 48, s.b, s.sums + r * 16);
    } else {
      narrow_row<16>(s, s.a + r * 24, s.b, s.sums + r * 16);
    }
  }
}

SAMEBITS_INLINE __m512 add_scaled(scale_order order, __m512 y, __m512 p, __m512 a, __m512 b) {
  switch (order) {
    case scale_order::product_fused: return _mm512_fmadd_ps(p, _mm512_mul_ps(a, b), y);
    case scale_order::product: return _mm512_add_ps(y, _mm512_mul_ps(p, _mm512_mul_ps(a, b)));
    case scale_order::a_then_b: return _mm512_add_ps(y, _mm512_mul_ps(_mm512_mul_ps(p, a), b));
    case scale_order::b_then_a: return _mm512_add_ps(y, _mm512_mul_ps(_mm512_mul_ps(p, b), a));
    case scale_order::a_then_b_fused: return _mm512_fmadd_ps(_mm512_mul_ps(p, a), b, y);
    case scale_order::b_then_a_fused: return _mm512_fmadd_ps(_mm512_mul_ps(p, b), a, y);
  }
  return y;
}

template <class Combine>
SAMEBITS_INLINE void promote_rows(const matmul_promotion& p, const Combine& combine) {
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const __m512 part = _mm512_loadu_ps(p.parts + r * 16);
    const __m512 sum = _mm512_loadu_ps(p.sums + r * 16);
    _mm512_storeu_ps(p.sums + r * 16, combine(sum, part, r));
    _mm512_storeu_ps(p.parts + r * 16, _mm512_setzero_ps());
  }
}

void promote(const matmul_promotion& p) {
  promote_rows(p, [](__m512 sum, __m512 part, std::int64_t) { return _mm512_add_ps(sum, part); });
}

void promote_scaled(const matmul_promotion& p) {
  const __m512 b = _mm512_loadu_ps(p.b_scales);
  promote_rows(p, [&](__m512 sum, __m512 part, std::int64_t r) {
    const __m512 a = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(p.a_scales[r])));
    return add_scaled(p.order, sum, part, a, b);
  });
}

}  // namespace
}  // namespace avx512

extern const matmul_kernel avx512_matmul_kernel = {16, simd::wide_step<avx512::matmul_isa>,
                                                   avx512::narrow_step, avx512::promote,
                                                   avx512::promote_scaled};

}  // namespace samebits::backends
