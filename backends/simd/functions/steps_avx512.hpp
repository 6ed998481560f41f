// The steps of numerics/hardware/cuda_functions/steps.hpp on AVX-512 lanes; and the operations of
// units.hpp.
//
// MXCSR must have its IEEE 754 state. A NaN result may have any NaN code. convert_kernel.hpp says
// what code may be used here.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/self_test/build_flags.hpp"
#include "backends/simd/functions/units.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx512 {

SAMEBITS_INLINE lanes fma(lanes a, lanes b, lanes c) {
  return words(_mm512_fmadd_ps(floats(a), floats(b), floats(c)));
}
SAMEBITS_INLINE lanes mul(lanes a, lanes b) { return isa::multiply(a, b); }
SAMEBITS_INLINE lanes add(lanes a, lanes b) { return isa::add(a, b); }
SAMEBITS_INLINE lanes sub(lanes a, lanes b) { return words(_mm512_sub_ps(floats(a), floats(b))); }
SAMEBITS_INLINE lanes div(lanes a, lanes b) { return isa::divide(a, b); }
SAMEBITS_INLINE lanes sqrt(lanes a) { return words(_mm512_sqrt_ps(floats(a))); }
SAMEBITS_INLINE lanes neg(lanes a) { return _mm512_xor_si512(a.v, _mm512_set1_epi32(INT32_MIN)); }
SAMEBITS_INLINE mask lt(lanes a, lanes b) {
  return {_mm512_cmp_ps_mask(floats(a), floats(b), _CMP_LT_OQ)};
}
/// The lanes with the canonical NaN for every NaN.
SAMEBITS_INLINE lanes with_canonical_nan(lanes a) {
  const __mmask16 is_nan = _mm512_cmp_ps_mask(floats(a), floats(a), _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(a.v, is_nan, lanes(0x7FFFFFFFu).v);
}

SAMEBITS_INLINE lanes fma_down(lanes a, lanes b, lanes c) {
  return words(_mm512_fmadd_round_ps(floats(a), floats(b), floats(c),
                                     _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
SAMEBITS_INLINE lanes add_rz(lanes a, lanes b) {
  return words(_mm512_add_round_ps(floats(a), floats(b), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}

/// The nearest number in [+0, 1]; +0 for a NaN: the maximum of a NaN and +0 is its second operand.
SAMEBITS_INLINE lanes saturate(lanes a) {
  const __m512 low = _mm512_max_ps(floats(a), _mm512_setzero_ps());
  return words(_mm512_min_ps(low, _mm512_set1_ps(1.0f)));
}

SAMEBITS_INLINE lanes nearest_whole(lanes a) {
  return words(_mm512_roundscale_ps(floats(a), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
SAMEBITS_INLINE lanes whole_toward_zero(lanes a) {
  return words(_mm512_roundscale_ps(floats(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
SAMEBITS_INLINE lanes whole_down(lanes a) {
  return words(_mm512_roundscale_ps(floats(a), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
}
/// Operands of 2^31 or more and NaN give 2^31 instead of 0; no function uses these results.
SAMEBITS_INLINE lanes to_int(lanes a) { return _mm512_cvttps_epi32(floats(a)); }
SAMEBITS_INLINE lanes from_int(lanes a) { return words(_mm512_cvtepi32_ps(a.v)); }

/// table[index] of each lane. Requires index < Rows. Chooses among registers, 32 rows at a time: on
/// an AMD EPYC exp is a fifth faster with it than with a gather, tanh a third.
template <std::size_t Rows>
SAMEBITS_INLINE lanes gather(const std::int32_t (&table)[Rows], lanes index) {
  static_assert(Rows % 32 == 0);
  lanes found = 0u;
#pragma GCC unroll 4
  for (std::uint32_t first = 0; first < Rows; first += 32) {
    const lanes chosen = _mm512_permutex2var_epi32(_mm512_loadu_si512(table + first), index.v,
                                                   _mm512_loadu_si512(table + first + 16));
    found = first == 0 ? chosen : select(index >= lanes(first), chosen, found);
  }
  return found;
}
/// The row of each lane. Requires row < Rows.
template <std::size_t Rows>
SAMEBITS_INLINE simd::unit_coefficients<lanes> coefficients_of(
    const simd::unit_columns<Rows>& columns, lanes row) {
  return {gather(columns.high, row), gather(columns.b, row), gather(columns.low_and_d, row)};
}
/// p[index] of each lane.
SAMEBITS_INLINE lanes gather(const std::uint32_t* p, lanes index) {
  return _mm512_i32gather_epi32(index.v, p, 4);
}
/// Byte p[index] of each lane. A lane reads four bytes, so three must follow the table.
SAMEBITS_INLINE lanes gather(const std::uint8_t* p, lanes index) {
  return lanes(_mm512_i32gather_epi32(index.v, p, 1)) & lanes(0xFFu);
}
/// The low 32 bits of each lane's product.
SAMEBITS_INLINE lanes product(lanes a, lanes b) { return _mm512_mullo_epi32(a.v, b.v); }
/// The larger number of each lane: a, if b is a NaN or both are zeros.
SAMEBITS_INLINE lanes larger(lanes a, lanes b) {
  return words(_mm512_max_ps(floats(b), floats(a)));
}
/// Lane from[t] of `a` in each lane t, modulo the lanes' count.
SAMEBITS_INLINE lanes permuted(lanes a, lanes from) {
  return _mm512_permutexvar_epi32(from.v, a.v);
}
/// The product of numbers below 2^15.
SAMEBITS_INLINE lanes small_product(lanes a, lanes b) { return _mm512_madd_epi16(a.v, b.v); }
/// Shifts signed lanes; rounds downward.
template <int Bits>
SAMEBITS_INLINE lanes shift_down(lanes a) {
  return _mm512_srai_epi32(a.v, Bits);
}
SAMEBITS_INLINE bool any(mask m) { return m.bits != 0; }

// CUDA's functions find Hopper's function units by the namespace of their operands.
using simd::ex2_approx;
using simd::ex2_approx_ftz;
using simd::rcp_approx_ftz;
using simd::rsqrt_approx;
using simd::rsqrt_approx_ftz;

}  // namespace samebits::avx512
