// The Arithmetic policy of optimizer steps (numerics/update/update_arithmetic.hpp) on AVX-512 lanes. The control
// register must have its IEEE 754 state.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backends/self_test/build_flags.hpp"
#include "backends/simd/lanes/lanes_avx512.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx512 {

struct update_hardware {
  using word = lanes;
  SAMEBITS_INLINE static __m512 number(lanes a) { return _mm512_castsi512_ps(a.v); }
  SAMEBITS_INLINE static lanes bits(__m512 a) { return _mm512_castps_si512(a); }

  SAMEBITS_INLINE static lanes product(lanes a, lanes b) { return isa::multiply(a, b); }
  SAMEBITS_INLINE static lanes quotient(lanes a, lanes b) { return isa::divide(a, b); }
  SAMEBITS_INLINE static lanes sum(lanes a, lanes b) { return isa::add(a, b); }
  SAMEBITS_INLINE static lanes fused(lanes a, lanes b, lanes c) {
    return bits(_mm512_fmadd_ps(number(a), number(b), number(c)));
  }
  SAMEBITS_INLINE static lanes square_root(lanes a) { return bits(_mm512_sqrt_ps(number(a))); }
  /// The entries of a table at each lane's index.
  SAMEBITS_INLINE static lanes entries(const std::uint32_t* table, lanes index) {
    return _mm512_i32gather_epi32(index.v, table, 4);
  }
  /// The entries of a table of bytes. Lanes read words, so three bytes must follow the last entry.
  SAMEBITS_INLINE static lanes entries(const std::uint8_t* table, lanes index) {
    return lanes(_mm512_i32gather_epi32(index.v, table, 1)) & lanes(0xFFu);
  }
  SAMEBITS_INLINE static lanes canonical(lanes a) {
    const __mmask16 is_nan = _mm512_cmp_ps_mask(number(a), number(a), _CMP_UNORD_Q);
    return _mm512_mask_mov_epi32(a.v, is_nan, lanes(0x7FFFFFFFu).v);
  }
};

}  // namespace samebits::avx512
