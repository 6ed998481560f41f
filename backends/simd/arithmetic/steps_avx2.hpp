// Arithmetic on AVX2: the definitions convert codes to binary32 lanes and back; the processor
// computes on the lanes.
//
// Operations round as MXCSR says; backends/simd/arithmetic/arithmetic.cpp sets MXCSR. Everything
// here is a template or inlined; see convert_kernel.hpp.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "backends/simd/arithmetic/arithmetic_rule.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/operation.hpp"

namespace samebits::avx2 {

/// The operations of AVX2 on registers of codes, for backends/simd/arithmetic/arithmetic_kernel.hpp.
struct registers {
  static constexpr simd::fused_steps steps = simd::fused_steps::none;
  static constexpr int register_bytes = isa::register_bytes;

  /// The values of a register of codes as binary32 lanes.
  template <format_id F>
  struct values {
    static constexpr int words = 32 / spec_of(F).storage_bits;
    lanes of[static_cast<std::size_t>(words)];
  };

  template <format_id F>
  SAMEBITS_INLINE static values<F> widen(const std::byte* p) {
    constexpr format_spec format = spec_of(F);
    values<F> x;
    for (int i = 0; i < values<F>::words; ++i) {
      const lanes codes =
          isa::load<format.storage_bits>(p + std::ptrdiff_t{i} * format.storage_bits);
      x.of[i] = numerics::decode<lanes>(format, codes);
    }
    return x;
  }

  /// op on each lane, rounded to binary32.
  template <operation Op, format_id F>
  SAMEBITS_INLINE static lanes step(lanes a, lanes b, lanes c) {
    const __m256 x = floats(a);
    const __m256 y = floats(b);
    __m256 result;
    if constexpr (Op == operation::add) {
      result = _mm256_add_ps(x, y);
    } else if constexpr (Op == operation::sub) {
      result = _mm256_sub_ps(x, y);
    } else if constexpr (Op == operation::mul) {
      result = _mm256_mul_ps(x, y);
    } else if constexpr (Op == operation::div) {
      result = _mm256_div_ps(x, y);
    } else if constexpr (Op == operation::sqrt) {
      result = _mm256_sqrt_ps(x);
    } else {  // fma: the product is exact
      result = _mm256_add_ps(_mm256_mul_ps(x, y), floats(c));
    }
    return words(result);
  }

  template <operation Op, format_id F>
  SAMEBITS_INLINE static values<F> apply(const values<F>& a, const values<F>& b,
                                         const values<F>& c) {
    values<F> result;
    for (int i = 0; i < values<F>::words; ++i) {
      result.of[i] = step<Op, F>(a.of[i], b.of[i], c.of[i]);
    }
    return result;
  }

  /// Rounds the results of an operation to one register of codes.
  template <operation Op, format_id F, overflow Policy>
  SAMEBITS_INLINE static __m256i narrow(const values<F>& x) {
    constexpr format_spec format = spec_of(F);
    constexpr cast_rule rule{rounding::nearest_even, Policy, nan_policy::canonical};
    values<F> codes;
    for (int i = 0; i < values<F>::words; ++i) {
      codes.of[i] = numerics::encode<lanes>(format, rule, x.of[i], lanes(0u)).code;
    }
    return isa::pack<format.storage_bits>(codes.of);
  }

  SAMEBITS_INLINE static void stream(std::byte* p, __m256i x) { isa::stream(p, x); }
  SAMEBITS_INLINE static void store(std::byte* p, __m256i x) { isa::store_register(p, x); }
  SAMEBITS_INLINE static void stream_fence() { isa::stream_fence(); }
};

}  // namespace samebits::avx2
