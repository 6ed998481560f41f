// Eight 32-bit words in an AVX2 register, with the operations that numerics/bits/word.hpp requires.
//
// Everything is in namespace samebits::avx2. The linker thus cannot replace a symbol compiled
// without this flag by one compiled with it.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "numerics/bits/word.hpp"

namespace samebits::avx2 {

/// A mask: all ones or all zeros in each lane.
struct mask {
  __m256i v;
};

SAMEBITS_INLINE mask operator&(mask a, mask b) { return {_mm256_and_si256(a.v, b.v)}; }
SAMEBITS_INLINE mask operator|(mask a, mask b) { return {_mm256_or_si256(a.v, b.v)}; }
SAMEBITS_INLINE mask operator!(mask a) { return {_mm256_xor_si256(a.v, _mm256_set1_epi32(-1))}; }

/// Eight 32-bit words, one per lane.
struct lanes {
  __m256i v;

  static constexpr int count = 8;

  lanes() = default;
  SAMEBITS_INLINE lanes(__m256i raw) : v(raw) {}  // NOLINT(google-explicit-constructor)
  /// Broadcasts a number to every lane.
  SAMEBITS_INLINE lanes(std::uint32_t x)  // NOLINT(google-explicit-constructor)
      : v(_mm256_set1_epi32(static_cast<int>(x))) {}
};

/// The lanes as binary32 numbers, and back.
SAMEBITS_INLINE __m256 floats(lanes a) { return _mm256_castsi256_ps(a.v); }
SAMEBITS_INLINE lanes words(__m256 a) { return _mm256_castps_si256(a); }

SAMEBITS_INLINE lanes operator+(lanes a, lanes b) { return _mm256_add_epi32(a.v, b.v); }
SAMEBITS_INLINE lanes operator-(lanes a, lanes b) { return _mm256_sub_epi32(a.v, b.v); }
SAMEBITS_INLINE lanes operator&(lanes a, lanes b) { return _mm256_and_si256(a.v, b.v); }
SAMEBITS_INLINE lanes operator|(lanes a, lanes b) { return _mm256_or_si256(a.v, b.v); }
SAMEBITS_INLINE lanes operator^(lanes a, lanes b) { return _mm256_xor_si256(a.v, b.v); }
SAMEBITS_INLINE lanes operator<<(lanes a, lanes n) { return _mm256_sllv_epi32(a.v, n.v); }
SAMEBITS_INLINE lanes operator>>(lanes a, lanes n) { return _mm256_srlv_epi32(a.v, n.v); }
SAMEBITS_INLINE lanes operator<<(lanes a, std::uint32_t n) {
  return _mm256_slli_epi32(a.v, static_cast<int>(n));
}
SAMEBITS_INLINE lanes operator>>(lanes a, std::uint32_t n) {
  return _mm256_srli_epi32(a.v, static_cast<int>(n));
}

SAMEBITS_INLINE mask operator==(lanes a, lanes b) { return {_mm256_cmpeq_epi32(a.v, b.v)}; }
SAMEBITS_INLINE mask operator!=(lanes a, lanes b) { return !(a == b); }
/// Unsigned comparison, built on AVX2's signed comparison.
SAMEBITS_INLINE mask operator>(lanes a, lanes b) {
  const __m256i flip = _mm256_set1_epi32(INT32_MIN);
  return {_mm256_cmpgt_epi32(_mm256_xor_si256(a.v, flip), _mm256_xor_si256(b.v, flip))};
}
SAMEBITS_INLINE mask operator<(lanes a, lanes b) { return b > a; }
SAMEBITS_INLINE mask operator>=(lanes a, lanes b) {
  return {_mm256_cmpeq_epi32(_mm256_max_epu32(a.v, b.v), a.v)};
}

SAMEBITS_INLINE lanes select(mask m, lanes a, lanes b) { return _mm256_blendv_epi8(b.v, a.v, m.v); }
SAMEBITS_INLINE lanes min_word(lanes a, lanes b) { return _mm256_min_epu32(a.v, b.v); }
SAMEBITS_INLINE lanes max_word(lanes a, lanes b) { return _mm256_max_epu32(a.v, b.v); }
/// Requires numbers below 2^24, which binary32 holds exactly: the exponent gives the result. 0
/// gives 158; every caller clamps the result.
SAMEBITS_INLINE lanes leading_zeros(lanes a) {
  const lanes exponent = words(_mm256_cvtepi32_ps(a.v)) >> 23u;
  return lanes(158u) - exponent;
}

/// The instruction set policy of AVX2: all operations of kernels that are not lane operators.
struct isa {
  using word = lanes;

  /// Loads eight codes of Bits bits each from memory of any alignment.
  template <int Bits>
  SAMEBITS_INLINE static lanes load(const std::byte* p) {
    if constexpr (Bits == 8) {
      return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    } else if constexpr (Bits == 16) {
      return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    } else {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    }
  }
  template <int Bits>
  SAMEBITS_INLINE static void store(std::byte* p, lanes x) {
    if constexpr (Bits == 32) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.v);
    } else {
      // 16-bit words 0..3 and 4..7, side by side in the low half
      const __m256i words = _mm256_permute4x64_epi64(_mm256_packus_epi32(x.v, x.v), 0b11'01'10'00);
      const __m128i low = _mm256_castsi256_si128(words);
      if constexpr (Bits == 16) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), low);
      } else {
        _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(low, low));
      }
    }
  }

  /// Word C of four words at row(t), in lane t. Calls for several C share their loads.
  template <int C, class Row>
  SAMEBITS_INLINE static lanes column_of(const Row& row) {
    __m256i pairs[4];  // rows t and t + 4
#pragma GCC unroll 4
    for (int t = 0; t < 4; ++t) {
      const auto words = [&](int i) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(row(i)));
      };
      pairs[t] = _mm256_set_m128i(words(t + 4), words(t));
    }
    const auto halves = [](__m256i a, __m256i b) {
      return C < 2 ? _mm256_unpacklo_epi32(a, b) : _mm256_unpackhi_epi32(a, b);
    };
    const __m256i low = halves(pairs[0], pairs[1]), high = halves(pairs[2], pairs[3]);
    return C % 2 == 0 ? _mm256_unpacklo_epi64(low, high) : _mm256_unpackhi_epi64(low, high);
  }
  /// Word C of rows of four words, which begin `stride` words apart.
  template <int C>
  SAMEBITS_INLINE static lanes column(const std::uint32_t* p, std::int64_t stride) {
    return column_of<C>([&](int t) { return p + t * stride; });
  }

  /// Packs 32 / Bits words to one register of codes, in element order.
  template <int Bits>
  SAMEBITS_INLINE static __m256i pack(const lanes* w) {
    if constexpr (Bits == 8) {
      const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
      const __m256i low = _mm256_packus_epi32(w[0].v, w[1].v);
      const __m256i high = _mm256_packus_epi32(w[2].v, w[3].v);
      return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
    } else if constexpr (Bits == 16) {
      return _mm256_permute4x64_epi64(_mm256_packus_epi32(w[0].v, w[1].v), 0b11'01'10'00);
    } else {
      return w[0].v;
    }
  }
  static constexpr int register_bytes = 32;
  SAMEBITS_INLINE static __m256i load_register(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  /// Stores past the caches. p must be aligned to register_bytes.
  SAMEBITS_INLINE static void stream(std::byte* p, __m256i x) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), x);
  }
  /// Orders streamed stores before later stores.
  SAMEBITS_INLINE static void stream_fence() { _mm_sfence(); }
  SAMEBITS_INLINE static void store_register(std::byte* p, __m256i x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }

  /// AVX2 additions round as MXCSR says, which belongs to the caller.
  static constexpr bool supports_nearest_add = false;

  /// binary32 bits of a + b, a * b and a / b, rounded as MXCSR says.
  SAMEBITS_INLINE static lanes add(lanes a, lanes b) {
    return words(_mm256_add_ps(floats(a), floats(b)));
  }
  SAMEBITS_INLINE static lanes multiply(lanes a, lanes b) {
    return words(_mm256_mul_ps(floats(a), floats(b)));
  }
  SAMEBITS_INLINE static lanes divide(lanes a, lanes b) {
    return words(_mm256_div_ps(floats(a), floats(b)));
  }

  /// binary32 bits of numbers below 2^24; exact.
  SAMEBITS_INLINE static lanes from_integer(lanes a) { return words(_mm256_cvtepi32_ps(a.v)); }

  /// The maximum of each pair of 16-bit halves, unsigned.
  SAMEBITS_INLINE static lanes max_halves(lanes a, lanes b) { return _mm256_max_epu16(a.v, b.v); }
  SAMEBITS_INLINE static std::uint32_t largest(lanes a) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(1, 0, 3, 2)));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(2, 3, 0, 1)));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(m));
  }

  /// store_blocks() writes four Philox blocks of consecutive numbers as 16 words in index order.
  static constexpr int philox_blocks = 4;
  /// 64-bit lanes. The Philox rounds read only the low half of each lane; the high half may hold
  /// anything.
  struct wide {
    __m256i v;
  };
  SAMEBITS_INLINE static wide broadcast64(std::uint64_t x) {
    return {_mm256_set1_epi64x(static_cast<long long>(x))};
  }
  /// Block numbers first, first + 1, ...: even lanes hold the first two, odd lanes the other two.
  /// store_blocks() then needs no permutation across 128-bit lanes.
  SAMEBITS_INLINE static wide block_numbers(std::uint64_t first, std::uint64_t number_mask) {
    const __m256i offsets = _mm256_setr_epi64x(0, 2, 1, 3);
    const __m256i n = _mm256_add_epi64(broadcast64(first).v, offsets);
    return {_mm256_and_si256(n, broadcast64(number_mask).v)};
  }
  SAMEBITS_INLINE static wide high_half(wide a) {
    return {_mm256_shuffle_epi32(a.v, _MM_SHUFFLE(3, 3, 1, 1))};
  }
  SAMEBITS_INLINE static wide multiply_low_halves(wide a, wide b) {
    return {_mm256_mul_epu32(a.v, b.v)};
  }
  SAMEBITS_INLINE static wide xor3(wide a, wide b, wide c) {
    return {_mm256_xor_si256(_mm256_xor_si256(a.v, b.v), c.v)};
  }
  SAMEBITS_INLINE static wide xor2(wide a, wide b) { return {_mm256_xor_si256(a.v, b.v)}; }
  /// Swaps the halves of each lane of p, then XORs a ^ b into the new low halves.
  SAMEBITS_INLINE static wide swap_and_xor_low(wide p, wide a, wide b) {
    const __m256i low = _mm256_blend_epi32(_mm256_setzero_si256(), xor2(a, b).v, 0x55);
    return {_mm256_xor_si256(_mm256_shuffle_epi32(p.v, _MM_SHUFFLE(2, 3, 0, 1)), low)};
  }
  /// Stores the four words of each block together, blocks in order. `low` holds the first two
  /// words.
  SAMEBITS_INLINE static void store_blocks(std::byte* p, wide low, wide high) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_unpacklo_epi64(low.v, high.v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), _mm256_unpackhi_epi64(low.v, high.v));
  }
};

}  // namespace samebits::avx2

template <>
struct samebits::numerics::word_traits<samebits::avx2::lanes> {
  using mask = samebits::avx2::mask;
  using element = std::uint32_t;
};
