// Hopper's function units ex2, rcp and rsqrt on SIMD lanes: the steps of
// numerics/hardware/function_units/ for all lanes at once. A NaN result may have any NaN code.
//
// `Lanes` brings its operations in its own namespace: steps_avx2.hpp, steps_avx512.hpp.
// convert_kernel.hpp says what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/functions/unit_columns.hpp"
#include "numerics/bits/word.hpp"
#include "numerics/hardware/function_units/tables/ex2_table.hpp"
#include "numerics/hardware/function_units/tables/rcp_table.hpp"
#include "numerics/hardware/function_units/tables/rsqrt_table.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

namespace hopper = numerics::hopper;
using numerics::mask_of;

inline constexpr std::uint32_t fraction_mask = 0x007FFFFFu;
inline constexpr std::uint32_t inf_bits = 0x7F800000u;
inline constexpr std::uint32_t sign_bit = 0x80000000u;

inline constexpr auto ex2_columns =
    columns_of<64>([](std::uint32_t i) { return hopper::ex2_row(i); });
inline constexpr auto rcp_columns =
    columns_of<128>([](std::uint32_t i) { return hopper::rcp_row(i); });
/// 64 rows for even exponents, then 64 for odd ones.
inline constexpr auto rsqrt_columns = columns_of<128>([](std::uint32_t i) {
  return i < 64 ? hopper::rsqrt_even_row(i) : hopper::rsqrt_odd_row(i - 64);
});

/// hopper::truncated_square() of each lane. With the upper 7 bits h = x1 ... x7 of x, the kept partial
/// products are h^2 among themselves. With x8, x9, ..., x15 they are pairs of bits times a part of h:
/// only the lowest bit of a pair's product is left out.
template <class Lanes>
SAMEBITS_INLINE Lanes truncated_square(Lanes x) {
  const Lanes h = x >> 10u;
  Lanes square = small_product(h, (x >> 8u) - (h + h));  // 2 h^2 + x8 x9 * h
#pragma GCC unroll 3
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const Lanes pair = (x >> (8 - 2 * i)) & Lanes(3u);
    square = square + (small_product(pair, h >> (2 * i - 1)) >> 1u);
  }
  return square;
}

/// The significand of a result (unit_columns.hpp).
template <class Lanes, std::size_t Rows>
SAMEBITS_INLINE Lanes interpolate(const unit_columns<Rows>& columns, Lanes row, Lanes x) {
  const unit_coefficients<Lanes> c = coefficients_of(columns, row);
  const Lanes square = truncated_square(x) << 2u;
  const Lanes low = c.low_and_d & Lanes(0x1FFFFu);
  const Lanes sum = low + product(c.b & Lanes(511u), x) + product(c.low_and_d >> 17u, square);
  const Lanes linear = product(shift_down<9>(c.b), x);
  return c.high + shift_down<8>(linear + shift_down<9>(sum));
}

template <class Lanes>
SAMEBITS_INLINE Lanes exponent_field(Lanes x) {
  return (x >> 23u) & Lanes(255u);
}

/// In units of 2^-23, an operand of the result's range is truncated to an integer below 2^30 in
/// magnitude.
template <class Lanes>
SAMEBITS_INLINE Lanes ex2_approx_ftz(Lanes x) {
  const Lanes truncated = to_int(mul(x, Lanes(0x4B000000u)));
  // -1 for a negative operand with a fraction: the unit inverts its magnitude.
  const Lanes minus_fraction = Lanes(0u) - (truncated & Lanes(fraction_mask));
  const Lanes bits = truncated + shift_down<31>(truncated & minus_fraction);
  const Lanes fraction = bits & Lanes(fraction_mask);
  const Lanes ulps = interpolate(ex2_columns, fraction >> 17u, fraction & Lanes(0x1FFFFu));
  const Lanes result = (bits - fraction) + (ulps + Lanes(0x3F800000u));
  const Lanes zero_or_result = select(lt(x, Lanes(0xC2FC0000u)), Lanes(0u), result);  // x < -126
  // Inf from 128 on, NaN of a NaN
  return select(lt(x, Lanes(0x43000000u)), zero_or_result, mul(x, Lanes(inf_bits)));
}

/// As hopper::ex2_approx(): below -126 the square of the unit's result at x / 2.
template <class Lanes>
SAMEBITS_INLINE Lanes ex2_approx(Lanes x) {
  const mask_of<Lanes> small = lt(x, Lanes(0xC2FC0000u));
  const Lanes root = ex2_approx_ftz(select(small, mul(x, Lanes(0x3F000000u)), x));
  return select(small, mul(root, root), root);
}

template <class Lanes>
SAMEBITS_INLINE Lanes rcp_approx_ftz(Lanes x) {
  const Lanes sign = x & Lanes(sign_bit);
  const Lanes e = exponent_field(x);
  const Lanes fraction = x & Lanes(fraction_mask);
  const mask_of<Lanes> exact = fraction == Lanes(0u);
  const Lanes ulps = interpolate(rcp_columns, fraction >> 16u, (fraction & Lanes(0xFFFFu)) << 1u);
  const Lanes field = Lanes(253u) - e + select(exact, Lanes(1u), Lanes(0u));
  const Lanes number = (field << 23u) + select(exact, Lanes(0u), ulps);
  // field <= 0 for the largest operands and Inf
  const mask_of<Lanes> normal = (field - Lanes(1u)) < Lanes(254u);
  Lanes result = sign | select(normal, number, Lanes(0u));
  result = select(e == Lanes(0u), sign | Lanes(inf_bits), result);
  return select((x & Lanes(~sign_bit)) > Lanes(inf_bits), x, result);
}

template <class Lanes>
SAMEBITS_INLINE Lanes rsqrt_approx_ftz(Lanes x) {
  const Lanes sign = x & Lanes(sign_bit);
  const Lanes e = exponent_field(x);
  const Lanes fraction = x & Lanes(fraction_mask);
  const Lanes odd = (e + Lanes(1u)) & Lanes(1u);  // of e - 127
  const Lanes half = shift_down<1>(e - Lanes(127u));
  const mask_of<Lanes> exact = (odd | fraction) == Lanes(0u);
  const Lanes row = (odd << 6u) | (fraction >> 17u);
  const Lanes ulps = interpolate(rsqrt_columns, row, fraction & Lanes(0x1FFFFu));
  const Lanes number = ((Lanes(126u) - half) << 23u) + select(exact, Lanes(0x00800000u), ulps);
  Lanes result = select(x == Lanes(inf_bits), Lanes(0u), number);
  result = select(x > Lanes(inf_bits), Lanes(0x7FFFFFFFu), result);  // NaN and negative
  return select(e == Lanes(0u), sign | Lanes(inf_bits), result);
}

/// As hopper::rsqrt_approx(): below 2^-126 the unit's result at x * 2^24, times 2^12.
template <class Lanes>
SAMEBITS_INLINE Lanes rsqrt_approx(Lanes x) {
  const mask_of<Lanes> small = (x & Lanes(~sign_bit)) < Lanes(0x00800000u);
  const Lanes root = rsqrt_approx_ftz(select(small, mul(x, Lanes(0x4B800000u)), x));
  return select(small, mul(root, Lanes(0x45800000u)), root);
}

}  // namespace samebits::simd
