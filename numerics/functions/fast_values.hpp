// Fast values: the functions of rule `exact` with a relative error below 2^-36, in fewer binary64
// steps than exact_function.hpp takes.
//
// is_decided() says whether this error can change the rounding. A decided fast value rounds to
// nearest like the exact value, into any destination. For all other operands the definition,
// value_at(), must be computed. docs/decisions/0046-correct-rounding.md has the proof;
// fast_values_sweep compares all operands with the definition. Coefficients: coefficients.sollya.
//
// Exact results that are destination numbers or ties, such as e^0, need no steps of their own:
// their fast values are not decided. Where a result approaches 1 or x, the operand is limited, so
// that the fast value stays about 2^-29 away from 1 or x. is_decided() accepts this distance.
//
// GPUs take other sequences: backends/cuda/functions/exact/approximations.cuh says why.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "numerics/functions/exact_functions.hpp"
#include "numerics/functions/exponential.hpp"
#include "numerics/functions/logarithm.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::real {

/// Whether the function has fast values.
constexpr bool has_fast_value(exact_function f) {
  return f != exact_function::rsqrt && f != exact_function::reciprocal &&
         f < exact_function::silu_gradient;
}

/// Whether a number lies farther than 2^-36 of itself from every number of 25 significant bits. All
/// ties of the destinations are such numbers. 2^17 units in the last place are at least 2^-36 of y.
template <class Word>
SAMEBITS_INLINE constexpr mask_of<Word> is_decided(Word y) {
  constexpr std::uint64_t margin = std::uint64_t{1} << 17;
  constexpr std::uint64_t unit = std::uint64_t{1} << 28;
  return ((y + Word(margin)) & Word(unit - 1)) > Word(2 * margin);
}

/// e^r 2^k for |r| <= 0.3467.
template <class Word>
SAMEBITS_INLINE constexpr scaled_power<Word> fast_power_of(Word r, Word shifted) {
  const Word q = horner(r, bits_of(0x1.a003a503c81b4p-16), bits_of(0x1.a16f79f7ca6dcp-13),
                        bits_of(0x1.6c1766d694179p-10), bits_of(0x1.1110b2158335p-7),
                        bits_of(0x1.555554f36426bp-5), bits_of(0x1.55555573561e7p-3),
                        bits_of(0x1.00000000171bap-1));
  const Word rest = mul(mul(q, r), r);
  return {(shifted + Word(std::uint64_t{1023})) << std::uint64_t{52}, add(r, rest), rest};
}

/// e^x for |x| <= 200.
template <class Word>
SAMEBITS_INLINE constexpr scaled_power<Word> fast_power(Word x) {
  const auto k = nearest_whole(x, Word(bits_of(0x1.71547652b82fep+0)));
  return fast_power_of(fma(k.value, Word(bits_of(-0x1.62e42fefa39efp-1)), x), k.shifted);
}

/// log(1 + f) for 1 / sqrt(2) - 1 <= f <= sqrt(2) - 1.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_log1p(Word f) {
  const Word s = div(f, add(f, Word(bits_of(2.0))));
  const Word z = mul(s, s);
  const Word q = horner(z, bits_of(0x1.e2f60b32d18b3p-3), bits_of(0x1.2438dd00d68f3p-2),
                        bits_of(0x1.999a7a6670b8fp-2), bits_of(0x1.555554fdbb60dp-1), bits_of(2.0));
  return mul(s, q);
}

/// log(x) for x normal and above 0.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_log(Word x) {
  const auto [k, f] = split_for_log(x);
  return fma(k, Word(bits_of(0x1.62e42fefa39efp-1)), fast_log1p(f));
}

template <class Word>
SAMEBITS_INLINE constexpr Word fast_log2(Word x) {
  const auto [k, f] = split_for_log(x);
  return fma(fast_log1p(f), Word(bits_of(0x1.71547652b82fep+0)), k);
}

/// W(a) = e^(a^2 / 2) Phi(-a) for 0 <= a <= 14.6.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_tail_factor(Word a) {
  const Word four = bits_of(4.0);
  const Word t = div(sub(a, four), add(a, four));
  return horner(t, bits_of(-0x1.30237bce81f2ep-20), bits_of(-0x1.f4d76c3a99d98p-19),
                bits_of(0x1.5885a5e8d9fdap-18), bits_of(0x1.dd9dd3c9f7a39p-16),
                bits_of(-0x1.8045a5c316652p-15), bits_of(-0x1.8882ca567ec74p-13),
                bits_of(0x1.4ef45852b5617p-11), bits_of(0x1.0a1bd5eba1b8p-11),
                bits_of(-0x1.1644ebf07c292p-7), bits_of(0x1.f9b05ef6739cbp-6),
                bits_of(-0x1.25b6aa7bb11cdp-4), bits_of(0x1.fd751a1fb15c2p-4),
                bits_of(-0x1.5cf97b0b1c477p-3), bits_of(0x1.82b4bb8c95b62p-4));
}

/// The smaller one of x and `most`; `most` for a NaN.
template <class Word>
SAMEBITS_INLINE constexpr Word at_most(Word x, std::uint64_t most) {
  return select(lt(x, Word(most)), x, Word(most));
}

/// x / (1 + e^-v); a v above 20 is taken as 20.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_gate(Word x, Word v) {
  const Word power = value_of(fast_power(neg(at_most(v, bits_of(20.0)))));
  return div(x, add(power, Word(one)));
}

template <class Word>
SAMEBITS_INLINE constexpr Word fast_exp2(Word x) {
  const auto k = nearest_whole(x, Word(one));
  return value_of(
      fast_power_of(mul(sub(x, k.value), Word(bits_of(0x1.62e42fefa39efp-1))), k.shifted));
}

/// log(1 + e^x): x, if above 0, plus log1p(e^-|x|), where an x above 17 is taken as 17.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_softplus(Word x) {
  const Word zero = std::uint64_t{0};
  const Word u = value_of(fast_power(at_most(x, bits_of(17.0)) | Word(sign_bit)));
  const auto halved = Word(bits_of(0.414)) < u;  // then log(1 + u) = log(2) + log(1 + (u - 1) / 2)
  const Word f = select(halved, fma(u, Word(bits_of(0.5)), Word(bits_of(-0.5))), u);
  const Word log2 = select(halved, Word(bits_of(0x1.62e42fefa39efp-1)), zero);
  return add(add(log2, fast_log1p(f)), select(lt(x, zero), zero, x));
}

/// erf(x); magnitudes above 4.3 are taken as 4.3.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_erf(Word x) {
  const Word a = at_most(magnitude(x), bits_of(4.3));
  const Word z = mul(a, a);
  const Word q = horner(z, bits_of(0x1.1b892a2960a3ap-20), bits_of(-0x1.d25b7caf687dap-17),
                        bits_of(0x1.f56b9d8674bd3p-14), bits_of(-0x1.bfdf51a9b3cafp-11),
                        bits_of(0x1.56586c7516b17p-8), bits_of(-0x1.b82cb8ebed43dp-6),
                        bits_of(0x1.ce2f209722714p-4), bits_of(-0x1.812746adb1926p-2),
                        bits_of(0x1.20dd750428b1cp0));
  const Word tail = mul(value_of(fast_power(neg(z))),
                        fast_tail_factor(mul(a, Word(bits_of(0x1.6a09e667f3bcdp+0)))));
  const Word far = fma(Word(bits_of(-2.0)), tail, Word(one));
  return with_sign(select(a < Word(one), mul(a, q), far), x);
}

/// x Phi(x); Phi of an x above 6 is taken as Phi(6).
template <class Word>
SAMEBITS_INLINE constexpr Word fast_gelu(Word x) {
  const Word a = magnitude(at_most(x, bits_of(6.0)));
  const Word bell = value_of(fast_power(mul(mul(a, a), Word(bits_of(-0.5)))));
  const Word tail = mul(bell, fast_tail_factor(a));
  return mul(x, select(lt(x, Word(std::uint64_t{0})), tail, sub(Word(one), tail)));
}

/// x sigmoid(v), v = 2 sqrt(2 / pi) (x + 0.044715 x^3).
template <class Word>
SAMEBITS_INLINE constexpr Word fast_gelu_tanh(Word x) {
  const Word cubic = bits_of(0x1.2444f2a4d8b4bp-4), slope = bits_of(0x1.9884533d43651p+0);
  return fast_gate(x, mul(x, fma(cubic, mul(x, x), slope)));
}

/// tanh(x) = m / (m + 2), m = e^2x - 1; magnitudes above 10 are taken as 10.
template <class Word>
SAMEBITS_INLINE constexpr Word fast_tanh(Word x) {
  const Word a = at_most(magnitude(x), bits_of(10.0));
  const Word m = minus_one(fast_power(add(a, a)));
  return with_sign(div(m, add(m, Word(bits_of(2.0)))), x);
}

/// Whether low <= x < high, for the bits of numbers above 0; false for all other x.
template <class Word>
SAMEBITS_INLINE constexpr mask_of<Word> is_between(Word x, std::uint64_t low, std::uint64_t high) {
  return x - Word(low) < Word(high - low);
}

/// Whether fast_value() may be called with an operand.
template <exact_function F, class Word>
SAMEBITS_INLINE constexpr mask_of<Word> is_fast_operand(Word x) {
  using mask = mask_of<Word>;
  if constexpr (F == exact_function::log || F == exact_function::log2) {
    return is_between(x, 1, inf);
  } else if constexpr (F == exact_function::log1p) {
    const mask size_fits = is_between(magnitude(x), bits_of(0x1p-29), bits_of(0x1p29));
    const mask above = lt(Word(one | sign_bit), x);
    return size_fits & above;
  } else {
    const mask size_fits = magnitude(x) < Word(bits_of(200.0));
    if constexpr (F != exact_function::gelu && F != exact_function::gelu_tanh) return size_fits;
    const mask above = lt(Word(bits_of(-13.0)), x);
    return size_fits & above;
  }
}

/// The function at an operand with is_fast_operand().
template <exact_function F, class Word>
SAMEBITS_INLINE constexpr Word fast_value(Word x) {
  if constexpr (F == exact_function::exp) return value_of(fast_power(x));
  else if constexpr (F == exact_function::exp2) return fast_exp2(x);
  else if constexpr (F == exact_function::expm1) return minus_one(fast_power(x));
  else if constexpr (F == exact_function::log) return fast_log(x);
  else if constexpr (F == exact_function::log2) return fast_log2(x);
  else if constexpr (F == exact_function::log1p) return fast_log(add(x, Word(one)));
  else if constexpr (F == exact_function::tanh) return fast_tanh(x);
  else if constexpr (F == exact_function::erf) return fast_erf(x);
  else if constexpr (F == exact_function::sigmoid) return fast_gate(Word(one), x);
  else if constexpr (F == exact_function::silu) return fast_gate(x, x);
  else if constexpr (F == exact_function::gelu) return fast_gelu(x);
  else if constexpr (F == exact_function::gelu_tanh) return fast_gelu_tanh(x);
  else return fast_softplus(x);
}

}  // namespace samebits::numerics::real
