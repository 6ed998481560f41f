// The steps of numerics/hardware/cuda_functions/steps.hpp on AVX2 lanes, with fused multiply-adds;
// and the operations of units.hpp.
//
// MXCSR must have its IEEE 754 state. A NaN result may have any NaN code. convert_kernel.hpp says
// what code may be used here.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/self_test/build_flags.hpp"
#include "backends/simd/functions/units.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx2 {

SAMEBITS_INLINE lanes fma(lanes a, lanes b, lanes c) {
  return words(_mm256_fmadd_ps(floats(a), floats(b), floats(c)));
}
SAMEBITS_INLINE lanes mul(lanes a, lanes b) { return isa::multiply(a, b); }
SAMEBITS_INLINE lanes add(lanes a, lanes b) { return isa::add(a, b); }
SAMEBITS_INLINE lanes sub(lanes a, lanes b) { return words(_mm256_sub_ps(floats(a), floats(b))); }
SAMEBITS_INLINE lanes div(lanes a, lanes b) { return isa::divide(a, b); }
SAMEBITS_INLINE lanes sqrt(lanes a) { return words(_mm256_sqrt_ps(floats(a))); }
SAMEBITS_INLINE lanes neg(lanes a) { return _mm256_xor_si256(a.v, _mm256_set1_epi32(INT32_MIN)); }
SAMEBITS_INLINE mask lt(lanes a, lanes b) {
  return {_mm256_castps_si256(_mm256_cmp_ps(floats(a), floats(b), _CMP_LT_OQ))};
}
/// The lanes with the canonical NaN for every NaN.
SAMEBITS_INLINE lanes with_canonical_nan(lanes a) {
  const __m256 is_nan = _mm256_cmp_ps(floats(a), floats(a), _CMP_UNORD_Q);
  return words(_mm256_blendv_ps(floats(a), floats(lanes(0x7FFFFFFFu)), is_nan));
}

/// fma(a, b, c) rounded downward. Requires c and the sum in [2^23, 2^24): their difference is exact
/// then. The error of the sum rounded to nearest is a * b - (sum - c), and its sign is exact.
SAMEBITS_INLINE lanes fma_down(lanes a, lanes b, lanes c) {
  const lanes sum = fma(a, b, c);
  return sum + lanes(lt(fma(a, b, sub(c, sum)), 0u).v);  // -1 if the sum is too large
}

/// a + b rounded toward zero. The error of a sum rounded to nearest is exact by the TwoSum steps.
SAMEBITS_INLINE lanes add_rz(lanes a, lanes b) {
  const lanes sum = add(a, b);
  const lanes part = add(sum, neg(a));
  const lanes error = add(add(a, neg(add(sum, neg(part)))), add(b, neg(part)));
  // The sum is too large in magnitude if the error has the other sign.
  const mask away = (lt(error, 0u) & lt(0u, sum)) | (lt(0u, error) & lt(sum, 0u));
  return sum - (lanes(away.v) & lanes(1u));
}

/// The nearest number in [+0, 1]; +0 for a NaN: the maximum of a NaN and +0 is its second operand.
SAMEBITS_INLINE lanes saturate(lanes a) {
  const __m256 low = _mm256_max_ps(floats(a), _mm256_setzero_ps());
  return words(_mm256_min_ps(low, _mm256_set1_ps(1.0f)));
}

SAMEBITS_INLINE lanes nearest_whole(lanes a) {
  return words(_mm256_round_ps(floats(a), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SAMEBITS_INLINE lanes whole_toward_zero(lanes a) {
  return words(_mm256_round_ps(floats(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
SAMEBITS_INLINE lanes whole_down(lanes a) {
  return words(_mm256_round_ps(floats(a), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
/// Operands of 2^31 or more and NaN give 2^31 instead of 0; no function uses these results.
SAMEBITS_INLINE lanes to_int(lanes a) { return _mm256_cvttps_epi32(floats(a)); }
SAMEBITS_INLINE lanes from_int(lanes a) { return words(_mm256_cvtepi32_ps(a.v)); }

/// The row of each lane. Requires row < Rows.
template <std::size_t Rows>
SAMEBITS_INLINE simd::unit_coefficients<lanes> coefficients_of(
    const simd::unit_columns<Rows>& columns, lanes row) {
  alignas(32) std::uint32_t offsets[lanes::count];
  _mm256_store_si256(reinterpret_cast<__m256i*>(offsets), _mm256_slli_epi32(row.v, 4));
  const auto load = [&](int t) {
    return reinterpret_cast<const std::byte*>(columns.rows) + offsets[t];
  };
  return {isa::column_of<0>(load), isa::column_of<1>(load), isa::column_of<2>(load)};
}
/// p[index] of each lane.
SAMEBITS_INLINE lanes gather(const std::uint32_t* p, lanes index) {
  return _mm256_i32gather_epi32(reinterpret_cast<const int*>(p), index.v, 4);
}
/// Byte p[index] of each lane. A lane reads four bytes, so three must follow the table.
SAMEBITS_INLINE lanes gather(const std::uint8_t* p, lanes index) {
  return lanes(_mm256_i32gather_epi32(reinterpret_cast<const int*>(p), index.v, 1)) & lanes(0xFFu);
}
/// The low 32 bits of each lane's product.
SAMEBITS_INLINE lanes product(lanes a, lanes b) { return _mm256_mullo_epi32(a.v, b.v); }
/// The larger number of each lane: a, if b is a NaN or both are zeros.
SAMEBITS_INLINE lanes larger(lanes a, lanes b) {
  return words(_mm256_max_ps(floats(b), floats(a)));
}
/// Lane from[t] of `a` in each lane t, modulo the lanes' count.
SAMEBITS_INLINE lanes permuted(lanes a, lanes from) {
  return _mm256_permutevar8x32_epi32(a.v, from.v);
}
/// The product of numbers below 2^15.
SAMEBITS_INLINE lanes small_product(lanes a, lanes b) { return _mm256_madd_epi16(a.v, b.v); }
/// Shifts signed lanes; rounds downward.
template <int Bits>
SAMEBITS_INLINE lanes shift_down(lanes a) {
  return _mm256_srai_epi32(a.v, Bits);
}
SAMEBITS_INLINE bool any(mask m) { return _mm256_testz_si256(m.v, m.v) == 0; }

// CUDA's functions find Hopper's function units by the namespace of their operands.
using simd::ex2_approx;
using simd::ex2_approx_ftz;
using simd::rcp_approx_ftz;
using simd::rsqrt_approx;
using simd::rsqrt_approx_ftz;

}  // namespace samebits::avx2
