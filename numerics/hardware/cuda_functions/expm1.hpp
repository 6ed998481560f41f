// expm1: CUDA's expm1f as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/ex2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::ex2_approx;

/// expm1f(x) = 2^n * (e^r - 1) + (2^n - 1), r = x - n * log(2), by a polynomial in r.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word expm1(operand<Word> x) {
  const Word minus_one = 0xBF800000u;
  const Word largest = 0x43000000u;                                // 128
  const mask_of<Word> small = lt(abs<Word>(x), Word(0x3ED1EB85));  // 0.41: n = 0
  const Word n = select(small, Word(0u), nearest_whole(mul(x, Word(0x3FB8AA3B))));
  const Word upper = fma(neg(n), Word(0x3F317200), x);  // log(2) in two parts
  const Word r = fma(neg(n), Word(0x35BFBE8E), upper);
  const mask_of<Word> halved = n == largest;  // 2^128 is twice 2^127
  const Word power = select(halved, add(n, minus_one), n);
  const Word sum = polynomial(r, {0x3AB5EBE6, 0x3C095663, 0x3D2AABE3, 0x3E2AA9F6, 0x3EFFFFFE});
  const Word fraction = fma(mul(r, sum), r, r);
  const Word scale = ex2_approx(power);
  const Word finite = fma(fraction, scale, add(scale, minus_one));
  Word result = select(halved, add(finite, finite), finite);
  result = select(lt(largest, power), Word(binary32::inf), result);
  result = select(lt(power, Word(0xC1C80000)), minus_one, result);  // below -25
  return select(is_zero<Word>(x), Word(x), result);
}

}  // namespace samebits::numerics::cuda_13_0
