// Steps: the binary32 operations that CUDA's functions consist of, named as in PTX.
//
// All operands and results are binary32 bits. Subnormals are kept. A NaN result is the canonical
// NaN, as on the GPU.
//
// The functions are templates of a Word (numerics/bits/word.hpp): std::uint32_t, or a class of SIMD
// lanes. The steps for std::uint32_t stand here and define the results. A class of lanes brings its
// own steps in its own namespace, where argument-dependent lookup finds them. So functions call
// steps and units without a namespace. A NaN result of such lanes may have any NaN code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/integral.hpp"
#include "numerics/arithmetic/multiply.hpp"
#include "numerics/arithmetic/square_root.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::ptx {

template <class Word>
struct operand_word {
  using type = Word;
};
/// The type of an operand from which no Word is deduced: numbers and lanes convert to it.
template <class Word>
using operand = typename operand_word<Word>::type;

/// fma.rn.f32, or with another rounding: fma.rm is `downward`.
SAMEBITS_HD constexpr std::uint32_t fma(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                        rounding round = rounding::nearest_even) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(
      fused_multiply_add(f, a, f, b, f, c, f, cast_rule{round}, 0).code);
}

/// fma.rm.f32: rounded downward. Lanes require that c and the sum are in [2^23, 2^24).
SAMEBITS_HD constexpr std::uint32_t fma_down(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return fma(a, b, c, rounding::downward);
}

/// mul.rn.f32
SAMEBITS_HD constexpr std::uint32_t mul(std::uint32_t a, std::uint32_t b) {
  return binary32::multiply(a, b);
}

/// add.rn.f32
SAMEBITS_HD constexpr std::uint32_t add(std::uint32_t a, std::uint32_t b) {
  return binary32::add(a, b);
}

/// div.rn.f32 and sqrt.rn.f32
SAMEBITS_HD constexpr std::uint32_t div(std::uint32_t a, std::uint32_t b) {
  return binary32::divide(a, b);
}
SAMEBITS_HD constexpr std::uint32_t sqrt(std::uint32_t a) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(square_root(f, a, f, cast_rule{}, 0).code);
}

/// add.rz.f32: rounded toward zero.
SAMEBITS_HD constexpr std::uint32_t add_rz(std::uint32_t a, std::uint32_t b) {
  const format_spec f = spec_of(format_id::fp32);
  const cast_rule toward_zero{rounding::toward_zero};
  return static_cast<std::uint32_t>(numerics::add(f, a, f, b, f, toward_zero, 0).code);
}

/// neg.f32 of a number that is not a NaN.
SAMEBITS_INLINE constexpr std::uint32_t neg(std::uint32_t a) { return a ^ binary32::sign_bit; }

/// sub.rn.f32
template <class Word>
SAMEBITS_HD constexpr Word sub(Word a, operand<Word> b) {
  return add(a, neg(b));
}

/// abs.f32
template <class Word>
SAMEBITS_INLINE constexpr Word abs(Word a) {
  return a & Word(~binary32::sign_bit);
}

/// copysign.f32: the magnitude of `a` with the sign of `sign`.
template <class Word>
SAMEBITS_INLINE constexpr Word copysign(Word sign, operand<Word> a) {
  return abs<Word>(a) | (sign & Word(binary32::sign_bit));
}

template <class Word>
SAMEBITS_INLINE constexpr mask_of<Word> is_nan(Word a) {
  return abs(a) > Word(binary32::inf);
}
template <class Word>
SAMEBITS_INLINE constexpr mask_of<Word> is_zero(Word a) {
  return abs(a) == Word(0u);
}

/// cvt.sat.f32.f32: the nearest number in [+0, 1]; +0 for a NaN.
SAMEBITS_INLINE constexpr std::uint32_t saturate(std::uint32_t a) {
  if (binary32::is_nan(a) || (a & binary32::sign_bit) != 0) return 0;
  return a < binary32::one ? a : binary32::one;
}

/// cvt.rni.f32.f32: the nearest whole number, the even one of two.
SAMEBITS_HD constexpr std::uint32_t nearest_whole(std::uint32_t a) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(round_to_integral(f, a, f, cast_rule{}, 0).code);
}

/// cvt.rzi.f32.f32 and cvt.rmi.f32.f32: toward zero, downward.
SAMEBITS_HD constexpr std::uint32_t whole_toward_zero(std::uint32_t a) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(
      round_to_integral(f, a, f, cast_rule{rounding::toward_zero}, 0).code);
}
SAMEBITS_HD constexpr std::uint32_t whole_down(std::uint32_t a) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(
      round_to_integral(f, a, f, cast_rule{rounding::downward}, 0).code);
}

/// cvt.rzi.s32.f32 of a whole number below 2^31 in magnitude, in two's complement; 0 for all other
/// operands.
SAMEBITS_INLINE constexpr std::uint32_t to_int(std::uint32_t a) {
  const std::uint32_t magnitude = binary32::magnitude(a);
  if (magnitude < binary32::one || magnitude >= 0x4F000000) return 0;
  const std::uint32_t significand = (magnitude & 0x007FFFFFu) | binary32::min_normal;
  const int up = static_cast<int>(magnitude >> 23) - 150;
  const std::uint32_t whole = up >= 0 ? significand << up : significand >> -up;
  return (a & binary32::sign_bit) != 0 ? 0u - whole : whole;
}

/// cvt.rn.f32.s32 of an integer in two's complement
SAMEBITS_INLINE constexpr std::uint32_t from_int(std::uint32_t a) {
  if (a == 0) return 0;
  const std::int64_t wide = static_cast<std::int32_t>(a);
  return binary32::round(wide < 0, static_cast<std::uint64_t>(wide < 0 ? -wide : wide), 0);
}

/// setp.lt.f32: false if one is a NaN; -0 equals +0.
SAMEBITS_INLINE constexpr bool lt(std::uint32_t a, std::uint32_t b) {
  if (binary32::is_nan(a) || binary32::is_nan(b)) return false;
  const std::int64_t x = binary32::magnitude(a);
  const std::int64_t y = binary32::magnitude(b);
  return ((a & binary32::sign_bit) != 0 ? -x : x) < ((b & binary32::sign_bit) != 0 ? -y : y);
}

/// Horner's rule by fma: c[0] x^(N-1) + ... + c[N-1].
template <class Word, std::size_t N>
SAMEBITS_HD constexpr Word polynomial(Word x, const std::uint32_t (&c)[N]) {
  Word sum = c[0];
  for (std::size_t i = 1; i < N; ++i) sum = fma(sum, x, Word(c[i]));
  return sum;
}

}  // namespace samebits::numerics::ptx
