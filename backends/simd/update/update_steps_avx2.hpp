// The Arithmetic policy of optimizer steps (numerics/update/update_arithmetic.hpp) on AVX2 lanes with fused
// multiply-adds. The control register must have its IEEE 754 state.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backends/self_test/build_flags.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx2 {

struct update_hardware {
  using word = lanes;
  SAMEBITS_INLINE static __m256 number(lanes a) { return _mm256_castsi256_ps(a.v); }
  SAMEBITS_INLINE static lanes bits(__m256 a) { return _mm256_castps_si256(a); }

  SAMEBITS_INLINE static lanes product(lanes a, lanes b) { return isa::multiply(a, b); }
  SAMEBITS_INLINE static lanes quotient(lanes a, lanes b) { return isa::divide(a, b); }
  SAMEBITS_INLINE static lanes sum(lanes a, lanes b) { return isa::add(a, b); }
  SAMEBITS_INLINE static lanes fused(lanes a, lanes b, lanes c) {
    return bits(_mm256_fmadd_ps(number(a), number(b), number(c)));
  }
  SAMEBITS_INLINE static lanes square_root(lanes a) { return bits(_mm256_sqrt_ps(number(a))); }
  /// The entries of a table at each lane's index.
  SAMEBITS_INLINE static lanes entries(const std::uint32_t* table, lanes index) {
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index.v, 4);
  }
  /// The entries of a table of bytes. Lanes read words, so three bytes must follow the last entry.
  SAMEBITS_INLINE static lanes entries(const std::uint8_t* table, lanes index) {
    return lanes(_mm256_i32gather_epi32(reinterpret_cast<const int*>(table), index.v, 1)) &
           lanes(0xFFu);
  }
  SAMEBITS_INLINE static lanes canonical(lanes a) {
    const __m256 is_nan = _mm256_cmp_ps(number(a), number(a), _CMP_UNORD_Q);
    return bits(_mm256_blendv_ps(number(a), number(lanes(0x7FFFFFFFu)), is_nan));
  }
};

}  // namespace samebits::avx2
