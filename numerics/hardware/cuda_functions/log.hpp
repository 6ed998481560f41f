// log: CUDA's logf, log2f, log10f and __logf as nvcc 13.0 compiles them for sm_90, without
// fast-math flags.
//
// Source: the PTX that nvcc 13.0.88 emits. Only __logf uses a function unit.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/function_units/lg2.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::cuda_13_0 {

using namespace ptx;  // NOLINT(google-build-using-namespace): steps of any Word
using hopper::lg2_approx;

/// x = (1 + a) * 2^exponent, 1 + a within a factor of two that begins at `lowest`.
template <class Word>
struct log_operand {
  Word scaled;    ///< x, or x * 2^23 below 2^-126 (negative numbers included)
  Word a;         ///< binary32
  Word exponent;  ///< binary32
};

template <class Word>
SAMEBITS_HD constexpr log_operand<Word> log_operand_of(Word x, std::uint32_t lowest) {
  const mask_of<Word> small = lt(x, Word(binary32::min_normal));
  const Word scaled = select(small, mul(x, Word(0x4B000000)), x);
  const Word shift = select(small, Word(0xC1B80000), Word(0u));  // -23
  const Word exponent = (scaled - Word(lowest)) & Word(0xFF800000);
  return {scaled, add(scaled - exponent, Word(0xBF800000)),
          fma(from_int(exponent), Word(0x34000000), shift)};
}

/// The result where it is not `finite`: -Inf for zeros, Inf for Inf, NaN for NaN and negative x.
template <class Word>
SAMEBITS_HD constexpr Word log_result(const log_operand<Word>& x, Word finite) {
  const Word inf = binary32::inf;
  const Word special = fma(x.scaled, inf, inf);
  const Word result = select(x.scaled < inf, finite, special);
  return select(is_zero(x.scaled), Word(binary32::sign_bit | binary32::inf), result);
}

/// logf(x) = log(1 + a) + exponent * log(2), 2/3 <= 1 + a < 4/3, by a polynomial in a.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word log(operand<Word> x) {
  const log_operand<Word> y = log_operand_of<Word>(x, 0x3F2AAAAB);
  const Word sum = polynomial(y.a, {0xBE055027, 0x3E1039F6, 0xBDF8CDCC, 0x3E0F2955, 0xBE2AD8B9,
                                    0x3E4CED0B, 0xBE7FFF22, 0x3EAAAA78, 0xBF000000});
  const Word fraction = fma(mul(y.a, sum), y.a, y.a);
  return log_result(y, fma(y.exponent, Word(0x3F317218), fraction));
}

/// log10f(x) = logf(x) * log10(e), in two roundings.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word log10(operand<Word> x) {
  return mul(log<Word>(x), Word(0x3EDE5BD9));
}

/// log2f(x) = log2(1 + a) + exponent, 0.707 <= 1 + a < 1.414, by a polynomial in a.
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word log2(operand<Word> x) {
  const log_operand<Word> y = log_operand_of<Word>(x, 0x3F3504F3);
  const Word sum = polynomial(y.a, {0x3DC6B27F, 0xBE2C7F30, 0x3E2FCF2A, 0xBE374E43, 0x3E520BF4,
                                    0xBE763C8B, 0x3E93BF99, 0xBEB8AA49, 0x3EF6384A, 0xBF38AA3B});
  const Word tail = mul(y.a, mul(y.a, sum));
  return log_result(y, add(y.exponent, fma(y.a, Word(0x3FB8AA3B), tail)));
}

/// __logf(x) = lg2(x) * log(2).
template <class Word = std::uint32_t>
SAMEBITS_HD constexpr Word fast_log(operand<Word> x) {
  return mul(lg2_approx(x), Word(0x3F317218));
}

}  // namespace samebits::numerics::cuda_13_0
