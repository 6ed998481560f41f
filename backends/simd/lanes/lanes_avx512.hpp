// Sixteen 32-bit words in an AVX-512 register, with the operations that numerics/bits/word.hpp
// requires.
//
// Needs AVX512 F, BW, VL, DQ and CD. Everything is in namespace samebits::avx512. The linker thus
// cannot replace a symbol compiled without these flags by one compiled with them.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "numerics/bits/word.hpp"

namespace samebits::avx512 {

/// A mask: one bit per lane.
struct mask {
  __mmask16 bits;
};

SAMEBITS_INLINE mask make_mask(int bits) { return {static_cast<__mmask16>(bits)}; }
SAMEBITS_INLINE mask operator&(mask a, mask b) { return make_mask(a.bits & b.bits); }
SAMEBITS_INLINE mask operator|(mask a, mask b) { return make_mask(a.bits | b.bits); }
SAMEBITS_INLINE mask operator!(mask a) { return make_mask(~a.bits); }

/// Sixteen 32-bit words, one per lane.
struct lanes {
  __m512i v;

  static constexpr int count = 16;

  lanes() = default;
  SAMEBITS_INLINE lanes(__m512i raw) : v(raw) {}  // NOLINT(google-explicit-constructor)
  /// Broadcasts a number to every lane.
  SAMEBITS_INLINE lanes(std::uint32_t x)  // NOLINT(google-explicit-constructor)
      : v(_mm512_set1_epi32(static_cast<int>(x))) {}
};

/// The lanes as binary32 numbers, and back.
SAMEBITS_INLINE __m512 floats(lanes a) { return _mm512_castsi512_ps(a.v); }
SAMEBITS_INLINE lanes words(__m512 a) { return _mm512_castps_si512(a); }

SAMEBITS_INLINE lanes operator+(lanes a, lanes b) { return _mm512_add_epi32(a.v, b.v); }
SAMEBITS_INLINE lanes operator-(lanes a, lanes b) { return _mm512_sub_epi32(a.v, b.v); }
SAMEBITS_INLINE lanes operator&(lanes a, lanes b) { return _mm512_and_si512(a.v, b.v); }
SAMEBITS_INLINE lanes operator|(lanes a, lanes b) { return _mm512_or_si512(a.v, b.v); }
SAMEBITS_INLINE lanes operator^(lanes a, lanes b) { return _mm512_xor_si512(a.v, b.v); }
SAMEBITS_INLINE lanes operator~(lanes a) { return _mm512_ternarylogic_epi32(a.v, a.v, a.v, 0x55); }
SAMEBITS_INLINE lanes operator<<(lanes a, lanes n) { return _mm512_sllv_epi32(a.v, n.v); }
SAMEBITS_INLINE lanes operator>>(lanes a, lanes n) { return _mm512_srlv_epi32(a.v, n.v); }
SAMEBITS_INLINE lanes operator<<(lanes a, std::uint32_t n) { return _mm512_slli_epi32(a.v, n); }
SAMEBITS_INLINE lanes operator>>(lanes a, std::uint32_t n) { return _mm512_srli_epi32(a.v, n); }

SAMEBITS_INLINE mask operator==(lanes a, lanes b) { return {_mm512_cmpeq_epu32_mask(a.v, b.v)}; }
SAMEBITS_INLINE mask operator!=(lanes a, lanes b) { return {_mm512_cmpneq_epu32_mask(a.v, b.v)}; }
SAMEBITS_INLINE mask operator<(lanes a, lanes b) { return {_mm512_cmplt_epu32_mask(a.v, b.v)}; }
SAMEBITS_INLINE mask operator>(lanes a, lanes b) { return {_mm512_cmpgt_epu32_mask(a.v, b.v)}; }
SAMEBITS_INLINE mask operator>=(lanes a, lanes b) { return {_mm512_cmpge_epu32_mask(a.v, b.v)}; }

SAMEBITS_INLINE lanes select(mask m, lanes a, lanes b) {
  return _mm512_mask_blend_epi32(m.bits, b.v, a.v);
}
SAMEBITS_INLINE lanes min_word(lanes a, lanes b) { return _mm512_min_epu32(a.v, b.v); }
SAMEBITS_INLINE lanes max_word(lanes a, lanes b) { return _mm512_max_epu32(a.v, b.v); }
SAMEBITS_INLINE lanes leading_zeros(lanes a) { return _mm512_lzcnt_epi32(a.v); }

/// The instruction set policy of AVX-512: all operations of kernels that are not lane operators.
struct isa {
  using word = lanes;

  /// Loads sixteen codes of Bits bits each from memory of any alignment.
  template <int Bits>
  SAMEBITS_INLINE static lanes load(const std::byte* p) {
    if constexpr (Bits == 8) {
      return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    } else if constexpr (Bits == 16) {
      return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    } else {
      return _mm512_loadu_si512(p);
    }
  }
  template <int Bits>
  SAMEBITS_INLINE static void store(std::byte* p, lanes x) {
    if constexpr (Bits == 8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x.v));
    } else if constexpr (Bits == 16) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(x.v));
    } else {
      _mm512_storeu_si512(p, x.v);
    }
  }

  /// Word C of rows of four words, which begin `stride` words apart.
  template <int C>
  SAMEBITS_INLINE static lanes column(const std::uint32_t* p, std::int64_t stride) {
    const __m512i row = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i words = _mm512_set1_epi32(static_cast<int>(stride));
    return _mm512_i32gather_epi32(_mm512_mullo_epi32(row, words), p + C, 4);
  }

  /// Packs 32 / Bits words to one register of codes, in element order.
  template <int Bits>
  SAMEBITS_INLINE static __m512i pack(const lanes* w) {
    if constexpr (Bits == 8) {
      const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
      const __m512i low = _mm512_packus_epi32(w[0].v, w[1].v);
      const __m512i high = _mm512_packus_epi32(w[2].v, w[3].v);
      return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
    } else if constexpr (Bits == 16) {
      const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
      return _mm512_permutexvar_epi64(order, _mm512_packus_epi32(w[0].v, w[1].v));
    } else {
      return w[0].v;
    }
  }
  static constexpr int register_bytes = 64;
  SAMEBITS_INLINE static __m512i load_register(const std::byte* p) { return _mm512_loadu_si512(p); }
  /// Stores past the caches. p must be aligned to register_bytes.
  SAMEBITS_INLINE static void stream(std::byte* p, __m512i x) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x);
  }
  /// Orders streamed stores before later stores.
  SAMEBITS_INLINE static void stream_fence() { _mm_sfence(); }
  SAMEBITS_INLINE static void store_register(std::byte* p, __m512i x) { _mm512_storeu_si512(p, x); }

  /// binary32 bits of a + b, rounded to nearest even independent of MXCSR.
  static constexpr bool supports_nearest_add = true;
  SAMEBITS_INLINE static lanes nearest_add(lanes a, lanes b) {
    return words(
        _mm512_add_round_ps(floats(a), floats(b), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  /// binary32 bits of a + b in lanes where m is set, rounded toward zero independent of MXCSR; a in
  /// all other lanes.
  SAMEBITS_INLINE static lanes add_toward_zero_where(mask m, lanes a, lanes b) {
    const __m512 x = floats(a);
    return words(
        _mm512_mask_add_round_ps(x, m.bits, x, floats(b), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
  }
  /// binary32 bits of a - floor(a) for a >= 0; exact.
  SAMEBITS_INLINE static lanes fraction(lanes a) {
    return words(_mm512_reduce_round_ps(floats(a), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC,
                                        _MM_FROUND_NO_EXC));
  }
  /// The integer floor(a) for 0 <= a < 2^32.
  SAMEBITS_INLINE static lanes truncated(lanes a) {
    return _mm512_cvtt_roundps_epu32(floats(a), _MM_FROUND_NO_EXC);
  }

  /// binary32 bits of a + b, a * b and a / b, rounded to nearest even. Subnormals are handled as
  /// MXCSR says.
  SAMEBITS_INLINE static lanes add(lanes a, lanes b) { return nearest_add(a, b); }
  SAMEBITS_INLINE static lanes multiply(lanes a, lanes b) {
    return words(
        _mm512_mul_round_ps(floats(a), floats(b), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  SAMEBITS_INLINE static lanes divide(lanes a, lanes b) {
    return words(
        _mm512_div_round_ps(floats(a), floats(b), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  /// binary32 bits of numbers below 2^24; exact.
  SAMEBITS_INLINE static lanes from_integer(lanes a) { return words(_mm512_cvtepi32_ps(a.v)); }

  /// The maximum of each pair of 16-bit halves, unsigned.
  SAMEBITS_INLINE static lanes max_halves(lanes a, lanes b) { return _mm512_max_epu16(a.v, b.v); }
  SAMEBITS_INLINE static std::uint32_t largest(lanes a) { return _mm512_reduce_max_epu32(a.v); }

  /// store_blocks() writes eight Philox blocks of consecutive numbers as 32 words in index order.
  static constexpr int philox_blocks = 8;
  /// 64-bit lanes. The Philox rounds read only the low half of each lane; the high half may hold
  /// anything.
  struct wide {
    __m512i v;
  };
  SAMEBITS_INLINE static wide broadcast64(std::uint64_t x) {
    return {_mm512_set1_epi64(static_cast<long long>(x))};
  }
  /// Block numbers first, first + 1, ...: even lanes hold the first four, odd lanes the other four.
  /// store_blocks() then needs no permutation across 128-bit lanes.
  SAMEBITS_INLINE static wide block_numbers(std::uint64_t first, std::uint64_t number_mask) {
    const __m512i offsets = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i n = _mm512_add_epi64(broadcast64(first).v, offsets);
    return {_mm512_and_si512(n, broadcast64(number_mask).v)};
  }
  /// A shuffle: shifts would compete with the multiplications for an execution port.
  SAMEBITS_INLINE static wide high_half(wide a) {
    return {_mm512_shuffle_epi32(a.v, _MM_PERM_DDBB)};
  }
  SAMEBITS_INLINE static wide multiply_low_halves(wide a, wide b) {
    return {_mm512_mul_epu32(a.v, b.v)};
  }
  SAMEBITS_INLINE static wide xor3(wide a, wide b, wide c) {
    return {_mm512_ternarylogic_epi64(a.v, b.v, c.v, 0x96)};
  }
  SAMEBITS_INLINE static wide xor2(wide a, wide b) { return {_mm512_xor_si512(a.v, b.v)}; }
  /// Swaps the halves of each lane of p, then XORs a ^ b into the new low halves.
  SAMEBITS_INLINE static wide swap_and_xor_low(wide p, wide a, wide b) {
    return {_mm512_mask_ternarylogic_epi32(_mm512_shuffle_epi32(p.v, _MM_PERM_CDAB), 0x5555, a.v,
                                           b.v, 0x96)};
  }
  /// Stores the four words of each block together, blocks in order. `low` holds the first two
  /// words.
  SAMEBITS_INLINE static void store_blocks(std::byte* p, wide low, wide high) {
    _mm512_storeu_si512(p, _mm512_unpacklo_epi64(low.v, high.v));
    _mm512_storeu_si512(p + 64, _mm512_unpackhi_epi64(low.v, high.v));
  }
};

}  // namespace samebits::avx512

template <>
struct samebits::numerics::word_traits<samebits::avx512::lanes> {
  using mask = samebits::avx512::mask;
  using element = std::uint32_t;
};
