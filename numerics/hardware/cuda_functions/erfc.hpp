// erfc: CUDA's erfcf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "numerics/hardware/function_units/rcp.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::ex2_approx_ftz;
using hopper::rcp_approx_ftz;

/// e^(x^2) * erfc(x) for x >= 0: a polynomial in (x - 4) / (x + 4), divided by 2 x + 1.
template <class Word>
SAMEBITS_HD constexpr Word scaled_erfc(Word x) {
  const Word inverse = rcp_approx_ftz(add(x, Word(0x40800000)));
  const Word quotient = mul(add(x, Word(0xC0800000)), inverse);
  // One Newton step: (x - 4) / (x + 4) = quotient + inverse * rest.
  const Word partial = fma(Word(0xC0800000), add(quotient, Word(binary32::one)), x);
  const Word rest = fma(neg(quotient), x, partial);
  const Word place = fma(inverse, rest, quotient);
  const Word sum =
      polynomial(place, {0x3A69A091, 0x3BE6E05B, 0xBC81FB4B, 0x3D15373B, 0xBD887C5A, 0x3DC021D5,
                         0xBDCED424, 0x3D8B74DE, 0x3C7BF170, 0xBE0EF8D4, 0x3F9DD2C9});
  const Word divisor = fma(Word(0x40000000), x, Word(binary32::one));
  const Word reciprocal = rcp_approx_ftz(divisor);
  const Word ratio = mul(sum, reciprocal);
  const Word difference = sub(fma(x, mul(ratio, Word(0xC0000000)), sum), ratio);
  return fma(difference, reciprocal, ratio);
}

/// e^(-x^2), corrected by the rounding error of x^2.
template <class Word>
SAMEBITS_HD constexpr Word exp_of_minus_square(Word x) {
  const Word square = mul(x, x);
  const Word whole = whole_toward_zero(mul(neg(square), Word(0x3FB8AA3B)));
  const Word limit = copysign(whole, Word(0x42FC0000));  // -126
  const Word n = select(lt(Word(0x42FC0000), abs(whole)), limit, whole);
  const Word upper = fma(n, Word(0xBF317218), neg(square));  // log(2) in two parts
  const Word r = fma(n, Word(0x3102E308), upper);
  const Word power = add(n, Word(0x4B40007F)) << 23u;  // 2^n
  const Word result = mul(ex2_approx_ftz(mul(r, Word(0x3FB8AA3B))), power);
  return fma(result, fma(neg(x), x, square), result);
}

/// erfcf(x) = e^(-x^2) * scaled_erfc(x) for x >= 0, and 0 beyond 10.055; 2 - erfcf(-x) for x < 0.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word erfc(operand<Word> x) {
  const Word magnitude = abs<Word>(x);
  const Word product = mul(scaled_erfc(magnitude), exp_of_minus_square(magnitude));
  const Word positive = select(lt(Word(0x4120E148), magnitude), Word(0u), product);
  return select(lt(x, Word(0u)), sub(Word(0x40000000), positive), positive);
}

}  // namespace samebits::numerics::cuda_13_0
