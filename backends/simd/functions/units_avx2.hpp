// Hopper's function units ex2, rcp and rsqrt on AVX2 lanes: the steps of
// numerics/hardware/function_units/, eight operands at a time. A NaN result may have any NaN code.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backends/simd/functions/steps_avx2.hpp"
#include "backends/simd/functions/unit_columns.hpp"
#include "backends/simd/lanes/lanes_avx2.hpp"
#include "numerics/hardware/function_units/tables/ex2_table.hpp"
#include "numerics/hardware/function_units/tables/rcp_table.hpp"
#include "numerics/hardware/function_units/tables/rsqrt_table.hpp"
#include "samebits/core/config.hpp"

namespace samebits::avx2 {

namespace hopper = numerics::hopper;

inline constexpr std::uint32_t fraction_mask = 0x007FFFFFu;
inline constexpr std::uint32_t inf_bits = 0x7F800000u;
inline constexpr std::uint32_t sign_bit = 0x80000000u;

inline constexpr auto ex2_columns =
    simd::columns_of<64>([](std::uint32_t i) { return hopper::ex2_row(i); });
inline constexpr auto rcp_columns =
    simd::columns_of<128>([](std::uint32_t i) { return hopper::rcp_row(i); });
/// 64 rows for even exponents, then 64 for odd ones.
inline constexpr auto rsqrt_columns = simd::columns_of<128>([](std::uint32_t i) {
  return i < 64 ? hopper::rsqrt_even_row(i) : hopper::rsqrt_odd_row(i - 64);
});

SAMEBITS_INLINE lanes gather(const std::int32_t* table, lanes index) {
  return _mm256_i32gather_epi32(table, index.v, 4);
}
SAMEBITS_INLINE lanes product(lanes a, lanes b) { return _mm256_mullo_epi32(a.v, b.v); }
/// Shifts signed lanes; rounds downward.
template <int Bits>
SAMEBITS_INLINE lanes shift_down(lanes a) {
  return _mm256_srai_epi32(a.v, Bits);
}

/// hopper::truncated_square() of each lane.
SAMEBITS_INLINE lanes truncated_square(lanes x) {
  lanes square = 0u;
#pragma GCC unroll 7
  for (std::uint32_t i = 1; i <= 7; ++i) {
    const lanes lower = (x & lanes((1u << (17 - i)) - 1)) >> (i + 1);
    // Bit 17 - i of x, moved to the sign and spread over the lane.
    const lanes bit = shift_down<31>(x << (14 + i));
    square = square + (bit & (lanes(1u << (15 - 2 * i)) + lower));
  }
  return square;
}

/// The significand of a result (unit_columns.hpp).
template <std::size_t Rows>
SAMEBITS_INLINE lanes interpolate(const simd::unit_columns<Rows>& columns, lanes row, lanes x) {
  const lanes b = gather(columns.b, row);
  const lanes low_and_d = gather(columns.low_and_d, row);
  const lanes square = truncated_square(x) << 2u;
  const lanes low = low_and_d & lanes(0x1FFFFu);
  const lanes sum = low + product(b & lanes(511u), x) + product(low_and_d >> 17u, square);
  const lanes linear = product(shift_down<9>(b), x);
  return gather(columns.high, row) + shift_down<8>(linear + shift_down<9>(sum));
}

SAMEBITS_INLINE lanes exponent_field(lanes x) { return (x >> 23u) & lanes(255u); }

SAMEBITS_INLINE lanes ex2_approx_ftz(lanes x) {
  const lanes e = exponent_field(x);
  const mask negative = (x & lanes(sign_bit)) != lanes(0u);
  const lanes significand = (x & lanes(fraction_mask)) | lanes(0x00800000u);
  const lanes up = e - lanes(127u);
  // One of the shift counts is negative, hence above 31: the shift gives 0.
  const lanes magnitude = (significand << up) | (significand >> (lanes(127u) - e));
  const mask inverted = negative & ((magnitude & lanes(fraction_mask)) != lanes(0u));
  const lanes bits = select(inverted, lanes(~0u) - magnitude, magnitude);
  const lanes fraction = bits & lanes(fraction_mask);
  const lanes whole = magnitude >> 23u;
  const lanes one_if_inverted = lanes(inverted.v) & lanes(1u);
  const lanes field = lanes(127u) + select(negative, lanes(0u) - whole - one_if_inverted, whole);
  const lanes ulps = interpolate(ex2_columns, fraction >> 17u, fraction & lanes(0x1FFFFu));
  const lanes beyond = select(negative, lanes(0u), lanes(inf_bits));
  // 1 <= field <= 254, and |x| < 2^9
  const mask normal = ((field - lanes(1u)) < lanes(254u)) & (e < lanes(127u + 9));
  lanes result = select(normal, (field << 23u) + ulps, beyond);
  result = select(e == lanes(0u), lanes(0x3F800000u), result);
  return select((x & lanes(~sign_bit)) > lanes(inf_bits), x, result);
}

/// As hopper::ex2_approx(): below -126 the square of the unit's result at x / 2.
SAMEBITS_INLINE lanes ex2_approx(lanes x) {
  const mask small = lt(x, lanes(0xC2FC0000u));
  const lanes root = ex2_approx_ftz(select(small, mul(x, lanes(0x3F000000u)), x));
  return select(small, mul(root, root), root);
}

SAMEBITS_INLINE lanes rcp_approx_ftz(lanes x) {
  const lanes sign = x & lanes(sign_bit);
  const lanes e = exponent_field(x);
  const lanes fraction = x & lanes(fraction_mask);
  const mask exact = fraction == lanes(0u);
  const lanes ulps = interpolate(rcp_columns, fraction >> 16u, (fraction & lanes(0xFFFFu)) << 1u);
  const lanes field = lanes(253u) - e + (lanes(exact.v) & lanes(1u));
  const lanes number = (field << 23u) + select(exact, lanes(0u), ulps);
  // field <= 0 for the largest operands and Inf
  const mask normal = (field - lanes(1u)) < lanes(254u);
  lanes result = sign | select(normal, number, lanes(0u));
  result = select(e == lanes(0u), sign | lanes(inf_bits), result);
  return select((x & lanes(~sign_bit)) > lanes(inf_bits), x, result);
}

SAMEBITS_INLINE lanes rsqrt_approx_ftz(lanes x) {
  const lanes sign = x & lanes(sign_bit);
  const lanes e = exponent_field(x);
  const lanes fraction = x & lanes(fraction_mask);
  const lanes odd = (e + lanes(1u)) & lanes(1u);  // of e - 127
  const lanes half = shift_down<1>(e - lanes(127u));
  const mask exact = (odd | fraction) == lanes(0u);
  const lanes row = (odd << 6u) | (fraction >> 17u);
  const lanes ulps = interpolate(rsqrt_columns, row, fraction & lanes(0x1FFFFu));
  const lanes number = ((lanes(126u) - half) << 23u) + select(exact, lanes(0x00800000u), ulps);
  lanes result = select(x == lanes(inf_bits), lanes(0u), number);
  result = select(x > lanes(inf_bits), lanes(0x7FFFFFFFu), result);  // NaN and negative
  return select(e == lanes(0u), sign | lanes(inf_bits), result);
}

/// As hopper::rsqrt_approx(): below 2^-126 the unit's result at x * 2^24, times 2^12.
SAMEBITS_INLINE lanes rsqrt_approx(lanes x) {
  const mask small = (x & lanes(~sign_bit)) < lanes(0x00800000u);
  const lanes root = rsqrt_approx_ftz(select(small, mul(x, lanes(0x4B800000u)), x));
  return select(small, mul(root, lanes(0x45800000u)), root);
}

}  // namespace samebits::avx2
