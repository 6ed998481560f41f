// Steps: the binary32 operations that CUDA's functions consist of, named as in PTX.
//
// All operands and results are binary32 bits. Subnormals are kept. A NaN result is the canonical
// NaN, as on the GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/arithmetic/add.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/integral.hpp"
#include "numerics/arithmetic/multiply.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::ptx {

/// fma.rn.f32, or with another rounding: fma.rm is `downward`.
SAMEBITS_HD constexpr std::uint32_t fma(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                        rounding round = rounding::nearest_even) {
  const format_spec f = spec_of(format_id::fp32);
  return static_cast<std::uint32_t>(
      fused_multiply_add(f, a, f, b, f, c, f, cast_rule{round}, 0).code);
}

/// mul.rn.f32
SAMEBITS_HD constexpr std::uint32_t mul(std::uint32_t a, std::uint32_t b) {
  return binary32::multiply(a, b);
}

/// add.rn.f32
SAMEBITS_HD constexpr std::uint32_t add(std::uint32_t a, std::uint32_t b) {
  return binary32::add(a, b);
}

/// add.rz.f32: rounded toward zero.
SAMEBITS_HD constexpr std::uint32_t add_rz(std::uint32_t a, std::uint32_t b) {
  const format_spec f = spec_of(format_id::fp32);
  const cast_rule toward_zero{rounding::toward_zero};
  return static_cast<std::uint32_t>(numerics::add(f, a, f, b, f, toward_zero, 0).code);
}

/// neg.f32 of a number that is not a NaN.
SAMEBITS_INLINE constexpr std::uint32_t neg(std::uint32_t a) { return a ^ binary32::sign_bit; }

/// copysign.f32: the magnitude of `a` with the sign of `sign`.
SAMEBITS_INLINE constexpr std::uint32_t copysign(std::uint32_t sign, std::uint32_t a) {
  return binary32::magnitude(a) | (sign & binary32::sign_bit);
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

/// cvt.rn.f32.s32
SAMEBITS_INLINE constexpr std::uint32_t from_int(std::int32_t a) {
  if (a == 0) return 0;
  const std::int64_t wide = a;
  return binary32::round(a < 0, static_cast<std::uint64_t>(a < 0 ? -wide : wide), 0);
}

/// setp.lt.f32: false if one is a NaN; -0 equals +0.
SAMEBITS_INLINE constexpr bool lt(std::uint32_t a, std::uint32_t b) {
  if (binary32::is_nan(a) || binary32::is_nan(b)) return false;
  const std::int64_t x = binary32::magnitude(a);
  const std::int64_t y = binary32::magnitude(b);
  return ((a & binary32::sign_bit) != 0 ? -x : x) < ((b & binary32::sign_bit) != 0 ? -y : y);
}

/// Horner's rule by fma: c[0] x^(N-1) + ... + c[N-1].
template <std::size_t N>
SAMEBITS_HD constexpr std::uint32_t polynomial(std::uint32_t x, const std::uint32_t (&c)[N]) {
  std::uint32_t sum = c[0];
  for (std::size_t i = 1; i < N; ++i) sum = fma(sum, x, c[i]);
  return sum;
}

}  // namespace samebits::numerics::ptx
