// log1p: CUDA's log1pf as nvcc 13.0 compiles it for sm_90, without fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits. The function uses no function unit.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word

/// log1pf(x) = log(1 + a) + exponent * log(2), (1 + a) * 2^exponent = 1 + x, by a polynomial in a.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word log1p(operand<Word> x) {
  const Word minus_one = 0xBF800000u;
  const Word inf = binary32::inf;
  const Word total = add_rz(x, Word(binary32::one));
  const Word exponent = (total - Word(0x3F400000)) & Word(0xFF800000);  // 0.75
  // 1 + x = (x * 2^-e + 2^-e); 2^-e - 1 is exact as (4 * 2^-e) / 4 - 1.
  const Word power = fma(Word(0x3E800000), Word(0x40800000) - exponent, minus_one);
  const Word a = add(power, x - exponent);
  const Word e = mul(from_int(exponent), Word(0x34000000));
  const Word sum = polynomial(a, {0xBD39BF78, 0x3DD80012, 0xBE0778E0, 0x3E146475, 0xBE2A68DD,
                                  0x3E4CAF9E, 0xBE800042, 0x3EAAAAE6, 0xBF000000});
  const Word finite = fma(e, Word(0x3F317218), fma(mul(a, sum), a, a));
  // Below -1, negative NaN included; Inf and positive NaN.
  const mask_of<Word> special = (x > minus_one) | ((x >= inf) & (x < Word(binary32::sign_bit)));
  const Word result = select(special, fma(x, inf, inf), finite);  // Inf for Inf, else NaN
  return select(is_zero<Word>(x), Word(x), result);
}

}  // namespace samebits::numerics::cuda_13_0
