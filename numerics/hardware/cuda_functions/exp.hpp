// exp: CUDA's expf, exp2f and __expf as nvcc 13.0 compiles them for sm_90, without fast-math flags.
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
using hopper::ex2_approx_ftz;

/// e^x = power * scale, not yet multiplied. binary32 bits.
template <class Word>
struct exp_factors {
  Word power;
  Word scale;  ///< a power of two
};

/// e^x = ex2(exponent) * 2^n, where n is a whole number near x * log2(e), in -126 .. 126.
template <class Word>
struct exp_operands {
  Word exponent;
  Word n_in_low_bits;  ///< its lowest 8 bits are n + 127
};
template <class Word = std::uint32_t>
SAMEBITS_INLINE constexpr exp_operands<Word> exp_operands_of(operand<Word> x) {
  const Word place = saturate(fma(x, Word(0x3BBB989D), Word(0x3F000000)));
  // 12582913 + 252 * place: the ulp is 1, so the low bits of this number are n + 127.
  const Word shifted = fma_down(place, Word(0x437C0000), Word(0x4B400001));
  const Word n = add(shifted, Word(0xCB40007F));
  const Word upper = fma(x, Word(0x3FB8AA3B), neg(n));  // log2(e) in two parts
  const Word exponent = fma(x, Word(0x32A57060), upper);
  return {exponent, shifted};
}

/// The factors of e^x.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr exp_factors<Word> exp_factors_of(operand<Word> x) {
  const exp_operands<Word> of_x = exp_operands_of<Word>(x);
  return {ex2_approx_ftz(of_x.exponent), of_x.n_in_low_bits << 23u};
}

/// expf(x)
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word exp(operand<Word> x) {
  const exp_factors<Word> factors = exp_factors_of<Word>(x);
  return mul(factors.power, factors.scale);
}

/// exp2f(x) is one instruction.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word exp2(operand<Word> x) {
  return ex2_approx(x);
}

/// __expf(x) = ex2(x * log2(e)).
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word fast_exp(operand<Word> x) {
  return ex2_approx(mul(x, Word(0x3FB8AA3B)));
}

}  // namespace samebits::numerics::cuda_13_0
