// pow: CUDA's powf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::rcp_approx_ftz;

/// A sum of two binary32 numbers.
template <class Word>
struct two_parts {
  Word high;
  Word low;
};

/// log2 of a magnitude: its exponent, plus a series in t = 2 (m - 1) / (m + 1), 0.707 <= m < 1.414.
template <class Word>
SAMEBITS_HD constexpr two_parts<Word> log2_in_two_parts(Word magnitude) {
  const Word log2_e = 0x3FB8AA3Bu;
  const mask_of<Word> small = lt(magnitude, Word(binary32::min_normal));
  const Word scaled = select(small, mul(magnitude, Word(0x4B800000)), magnitude);
  const Word shift = select(small, Word(0xC1C00000), Word(0u));  // -24
  const Word field = (scaled - Word(0x3F3504F3)) & Word(0xFF800000);
  const Word exponent = fma(from_int(field), Word(0x34000000), shift);
  const Word m = scaled - field;
  const Word a = add(m, Word(0xBF800000));
  const Word inverse = rcp_approx_ftz(add(m, Word(binary32::one)));
  const Word t = mul(add(a, a), inverse);
  const Word square = mul(t, t);
  const Word difference = sub(a, t);
  const Word rest = mul(inverse, fma(neg(t), a, add(difference, difference)));  // t's error
  const Word sum =
      mul(polynomial(square, {0x3A2C32E4, 0x3B52E7DB, 0x3C93BB73, 0x3DF6384F}), square);
  const Word first = fma(t, log2_e, exponent);
  Word low = fma(t, log2_e, sub(exponent, first));
  low = fma(rest, log2_e, low);
  low = fma(t, Word(0x32A55E34), low);  // log2(e) in two parts
  low = fma(mul(sum, Word(0x40400000)), rest, low);
  low = fma(sum, t, low);
  const Word high = add(first, low);
  return {high, add(low, neg(add(high, neg(first))))};
}

/// 2^(x.high * y + x.low * y).
template <class Word>
SAMEBITS_HD constexpr Word exp2_of_product(const two_parts<Word>& x, Word y) {
  const Word product = mul(x.high, y);
  const Word error = fma(x.low, y, fma(x.high, y, neg(product)));
  const Word whole = nearest_whole(product);
  const Word fraction = add(error, sub(product, whole));
  const Word sum = polynomial(fraction, {0x391FCB8E, 0x3AAF85ED, 0x3C1D9856, 0x3D6357BB, 0x3E75FDEC,
                                         0x3F317218, 0x3F800000});
  // 2^whole in two factors
  const Word part = select(lt(Word(0u), whole), Word(0u), Word(0x83000000));
  const Word first = mul(sum, part + Word(0x7F000000));
  const Word finite = mul(first, (to_int(whole) << 23u) - part);
  const Word beyond = select(lt(product, Word(0u)), Word(0u), Word(binary32::inf));
  return select(lt(Word(0x43180000), abs(product)), beyond, finite);  // 152
}

/// |y - 2 trunc(y / 2)|: 1 for odd y.
template <class Word>
SAMEBITS_HD constexpr Word distance_from_even(Word y) {
  const Word half = whole_toward_zero(mul(y, Word(0x3F000000)));
  return abs(sub(y, add(half, half)));
}

/// powf(x, y)
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word pow(operand<Word> x, operand<Word> y) {
  const Word one = binary32::one;
  const Word inf = binary32::inf;
  const Word zero = 0u;
  const Word magnitude = abs<Word>(x);
  const mask_of<Word> odd = distance_from_even<Word>(y) == one;
  const mask_of<Word> y_negative = lt(y, zero);
  const Word positive = exp2_of_product<Word>(log2_in_two_parts(magnitude), y);
  // Negative x
  const Word negative = select(odd, neg(positive), positive);
  const mask_of<Word> whole = whole_down(y) == y;
  const mask_of<Word> below = lt(x, zero);
  Word result = select(below, select(whole, negative, Word(binary32::nan)), positive);
  const mask_of<Word> y_infinite = abs<Word>(y) == inf;
  result = select((x == Word(0xBF800000)) & y_infinite, one, result);
  // Zero and infinite x: 0 or Inf
  const Word twice = add(x, x);
  const Word edge =
      select(y_negative, (inf - abs(twice)) | (twice & Word(binary32::sign_bit)), twice);
  const mask_of<Word> at_edge = (magnitude == zero) | (magnitude == inf);
  result = select(at_edge, select(odd, edge, abs(edge)), result);
  result = select(is_nan<Word>(x) | is_nan<Word>(y), add(x, y), result);
  return select((x == one) | is_zero<Word>(y), one, result);
}

}  // namespace samebits::numerics::cuda_13_0
