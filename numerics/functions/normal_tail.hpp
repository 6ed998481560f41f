// Normal tail: Phi(-a), the probability of the normal distribution below -a, and erf.
//
// Phi(-a) = e^(-a^2 / 2) W(a). W is a polynomial in (a - 4) / (a + 4) (coefficients.sollya).
#pragma once

#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "numerics/functions/exponential.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::real {

/// W(a) = e^(a^2 / 2) Phi(-a) for 0 <= a <= 14.6.
template <class Word>
SAMEBITS_INLINE constexpr Word tail_factor(Word a) {
  const Word four = bits_of(4.0);
  const Word t = div(sub(a, four), add(a, four));
  return horner(t, bits_of(0x1.0d131473f3f57p-29), bits_of(0x1.3ebb40ecf5527p-27),
                bits_of(0x1.6a1bdf2ebae6dp-28), bits_of(-0x1.bdcd3a760a4fap-25),
                bits_of(-0x1.84e4d76ea0a76p-24), bits_of(0x1.bb42f8fed3432p-23),
                bits_of(0x1.6234787ff19e3p-21), bits_of(-0x1.bd8898004b3afp-21),
                bits_of(-0x1.20c5be1394232p-18), bits_of(0x1.36d48d9c90e66p-18),
                bits_of(0x1.e0a34ac0517dcp-16), bits_of(-0x1.7e247739c6413p-15),
                bits_of(-0x1.888dc88311a19p-13), bits_of(0x1.4eec24f2a163dp-11),
                bits_of(0x1.0a1bd412db35ep-11), bits_of(-0x1.1644dc2f84691p-7),
                bits_of(0x1.f9b05f0efdd7fp-6), bits_of(-0x1.25b6aa9658123p-4),
                bits_of(0x1.fd751a1fba3b8p-4), bits_of(-0x1.5cf97b0ae882dp-3),
                bits_of(0x1.82b4bb8c94dcep-4));
}

/// e^(-a^2 / 2). The square of a binary32 number is exact.
template <class Word>
SAMEBITS_INLINE constexpr Word bell(Word a) {
  return value_of(exp_parts(mul(mul(a, a), Word(bits_of(-0.5)))));
}

/// erf(x): x q(x^2) below 1, else 1 - 2 Phi(-sqrt(2) |x|). Above 5 it is held at erf(5), which lies
/// between 1 and every neighbour of 1 in the destinations.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_erf(Word x) {
  const Word size = magnitude(x);
  const Word a = select(size < Word(bits_of(5.0)), size, Word(bits_of(5.0)));
  const Word z = mul(a, a);  // exact
  const Word q = horner(z, bits_of(-0x1.ab11dc1698f15p-31), bits_of(0x1.d6e29a8d95caap-27),
                        bits_of(-0x1.5bfe49638887cp-23), bits_of(0x1.b97e3d31b527ap-20),
                        bits_of(-0x1.f4ca1fa29fd03p-17), bits_of(0x1.f9a2b74af97a5p-14),
                        bits_of(-0x1.c02db0143b2bep-11), bits_of(0x1.565bccf7e051cp-8),
                        bits_of(-0x1.b82ce311edfc5p-6), bits_of(0x1.ce2f21a0408cfp-4),
                        bits_of(-0x1.812746b0379b2p-2), bits_of(0x1.20dd750429b6dp0));
  const Word tail =
      mul(value_of(exp_parts(neg(z))), tail_factor(mul(a, Word(bits_of(0x1.6a09e667f3bcdp+0)))));
  const Word far = fma(Word(bits_of(-2.0)), tail, Word(one));
  Word y = select(size < Word(one), mul(a, q), far);
  y = exception(size, y, bits_of(0x1.c1c3c6p+0), bits_of(0x1.f95c247ffffffp-1));
  y = exception(size, y, bits_of(0x1.81d5acp-13), bits_of(0x1.b35e270000001p-13));
  return with_sign(y, x);
}

}  // namespace samebits::numerics::real
