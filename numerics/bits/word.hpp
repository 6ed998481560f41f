// Words: the operations that the rules in numerics/ use on the unsigned integers they compute with.
//
// Word is std::uint32_t (binary32 bits) or std::uint64_t (binary64 bits). A vector backend may
// supply a class of SIMD lanes in its own namespace. This class must offer the same operators and
// functions, which are found by argument-dependent lookup. One source text then serves scalars,
// SIMD lanes and GPU threads. Rules never branch on a Word; they use select().
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"

namespace samebits::numerics {

/// The mask type, which is the result of comparing Words (bool for scalars), and the element type.
template <class Word>
struct word_traits {
  using mask = bool;
  using element = Word;
};

template <class Word>
using mask_of = typename word_traits<Word>::mask;
template <class Word>
using element_of = typename word_traits<Word>::element;

/// a if m is set, else b; SIMD Words choose per lane.
SAMEBITS_INLINE constexpr std::uint32_t select(bool m, std::uint32_t a, std::uint32_t b) {
  return m ? a : b;
}
SAMEBITS_INLINE constexpr std::uint64_t select(bool m, std::uint64_t a, std::uint64_t b) {
  return m ? a : b;
}

template <class Word>
SAMEBITS_INLINE constexpr Word min_word(Word a, Word b) {
  return select(a < b, a, b);
}
template <class Word>
SAMEBITS_INLINE constexpr Word max_word(Word a, Word b) {
  return select(a < b, b, a);
}

/// Number of zeros above the highest set bit; the width for 0. Device code cannot call
/// std::countl_zero without --expt-relaxed-constexpr.
SAMEBITS_INLINE constexpr std::uint32_t leading_zeros(std::uint32_t x) {
  return x == 0 ? 32u : static_cast<std::uint32_t>(__builtin_clz(x));
}
SAMEBITS_INLINE constexpr std::uint64_t leading_zeros(std::uint64_t x) {
  return x == 0 ? 64u : static_cast<std::uint64_t>(__builtin_clzll(x));
}

/// The fraction of x / 2^shift, left-aligned in a Word and truncated. Requires shift >= 1 and zeros
/// in the two highest bits of x.
template <class Word>
SAMEBITS_INLINE constexpr Word discarded(Word x, Word shift) {
  using element = element_of<Word>;
  constexpr element width = sizeof(element) * 8;
  const Word limit = element{width - 1};
  const Word d = min_word(shift, limit);
  return (x << (Word(width) - d)) >> min_word(shift - d, limit);
}
/// The 32-bit version: one shift of a register pair, on CPUs and GPUs alike.
SAMEBITS_INLINE constexpr std::uint32_t discarded(std::uint32_t x, std::uint32_t shift) {
  return static_cast<std::uint32_t>((std::uint64_t{x} << 32) >> (shift < 63 ? shift : 63));
}

/// Constants of the IEEE 754 interchange format as wide as the Word: binary32 or binary64.
template <class Element>
struct binary;

template <>
struct binary<std::uint32_t> {
  static constexpr int width = 32, mantissa_bits = 23, bias = 127;
  static constexpr std::uint32_t sign_bit = 0x80000000u, one = 0x3F800000u, inf = 0x7F800000u,
                                 nan = 0x7FFFFFFFu;
};

template <>
struct binary<std::uint64_t> {
  static constexpr int width = 64, mantissa_bits = 52, bias = 1023;
  static constexpr std::uint64_t sign_bit = 0x8000000000000000u, one = 0x3FF0000000000000u,
                                 inf = 0x7FF0000000000000u, nan = 0x7FFFFFFFFFFFFFFFu;
};

}  // namespace samebits::numerics
