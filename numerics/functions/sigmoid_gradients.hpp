// Sigmoid gradients: the derivatives of silu, gelu and gelu_tanh in binary64 steps.
//
// Each has one zero, between -2 and 0. There a polynomial in the distance from the zero, which is
// known in two parts, keeps the relative error small.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "numerics/functions/exponential.hpp"
#include "numerics/functions/normal_tail.hpp"
#include "numerics/functions/sigmoids.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::real {

/// near(x - zero) (x - zero) if |x - zero| < 1/16, else y.
template <class Word, class Near>
SAMEBITS_INLINE constexpr Word near_zero(Word x, const two_parts<Word>& zero, Word y, Near near) {
  const Word w = sub(sub(x, zero.upper), zero.lower);
  return select(magnitude(w) < Word(bits_of(0x1p-4)), mul(w, near(w)), y);
}

/// sigmoid(v) + x v' sigmoid(v) (1 - sigmoid(v)), where e = e^-v.
template <class Word>
SAMEBITS_INLINE constexpr Word sigmoid_gradient(Word e, Word slope_x) {
  const Word sigmoid = div(Word(one), add(e, Word(one)));
  return fma(mul(slope_x, sigmoid), mul(e, sigmoid), sigmoid);
}

/// silu'(x) = sigmoid(x) (1 + x (1 - sigmoid(x))). Below 2^-12 it is 1/2 + x / 2 - x^3 / 12, where
/// the cube is held at 2^-25 of x / 2.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_silu_gradient(Word x) {
  const Word far = away_from_zero(x, Word(bits_of(0x1p-40)));
  const Word inner = clamp(x, Word(bits_of(-120.0)), Word(bits_of(27.0)));
  const Word y = sigmoid_gradient(value_of(exp_parts(neg(inner))), inner);
  const Word half = bits_of(0.5);
  const Word small = half_at_zero(x, fma(far, Word(bits_of(0x1.ffffffp-2)), half));
  const two_parts<Word> zero = {bits_of(-0x1.474973c84120bp+0), bits_of(-0x1.f8d74bc9ac154p-54)};
  const Word large = near_zero(x, zero, y, [](Word w) {
    return horner(w, bits_of(-0x1.8af40fd30a2bcp-19), bits_of(-0x1.f2d8976600f6fp-16),
                  bits_of(-0x1.57238dca12615p-15), bits_of(0x1.8574d136d4cb4p-13),
                  bits_of(0x1.a2a7caf0ee747p-11), bits_of(0x1.098e92b8f076dp-13),
                  bits_of(-0x1.b0f82c498fd2fp-8), bits_of(-0x1.f2d0e32bc2994p-7),
                  bits_of(0x1.353eb573ca457p-6), bits_of(0x1.2c563458cc0adp-3),
                  bits_of(0x1.be1410460527fp-3));
  });
  return select(magnitude(x) < Word(bits_of(0x1p-12)), small, large);
}

/// gelu_tanh'(x) = sigmoid(v) + x v' sigmoid(v) (1 - sigmoid(v)).
template <class Word>
SAMEBITS_INLINE constexpr Word exact_gelu_tanh_gradient(Word x) {
  const Word far = away_from_zero(x, Word(bits_of(0x1p-40)));
  const Word inner = clamp(far, Word(bits_of(-12.0)), Word(bits_of(6.0)));
  const auto v = gelu_tanh_argument(inner);
  const Word slope = fma(Word(bits_of(0x1.b6676bf7450f0p-3)), mul(inner, inner),
                         Word(bits_of(0x1.9884533d43651p+0)));
  const Word e = value_of(exp_parts(neg(v.upper), neg(v.lower)));
  Word y = half_at_zero(x, sigmoid_gradient(e, mul(inner, slope)));
  y = exception(x, y, bits_of(0x1.40d932p-25), bits_of(0x1.0000010000001p-1));
  y = exception(x, y, bits_of(-0x1.40d932p-26), bits_of(0x1.fffffefffffffp-2));
  const two_parts<Word> zero = {bits_of(-0x1.81429f9e97e4dp-1), bits_of(0x1.4f523ed77dbdcp-55)};
  return near_zero(x, zero, y, [](Word w) {
    return horner(w, bits_of(0x1.04936f0ef73dbp-13), bits_of(0x1.14bf895a69517p-12),
                  bits_of(-0x1.e63f294331885p-11), bits_of(-0x1.3d8d64170bb72p-9),
                  bits_of(0x1.58c9ed713486cp-8), bits_of(0x1.427996dc249cep-6),
                  bits_of(-0x1.104a83edc0ddcp-6), bits_of(-0x1.d2b77346470abp-4),
                  bits_of(-0x1.029615edb077ap-6), bits_of(0x1.8cd1a2b2fff33p-2),
                  bits_of(0x1.b8bacd2c96b91p-2));
  });
}

/// gelu'(x) = Phi(x) + x phi(x). With a = |x|: e^(-a^2/2) (W(a) - a / sqrt(2 pi)) below 0, and 1
/// minus this above.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_gelu_gradient(Word x) {
  const Word a = gelu_operand(x);
  const Word difference = fma(a, Word(bits_of(-0x1.9884533d43651p-2)), tail_factor(a));
  const Word tail = mul(bell(a), difference);
  Word y = half_at_zero(x, select(lt(x, Word(std::uint64_t{0})), tail, sub(Word(one), tail)));
  const two_parts<Word> zero = {bits_of(-0x1.80ead197f00b4p-1), bits_of(0x1.13e74c58cada8p-56)};
  y = exception(x, y, bits_of(0x1.40d932p-25), bits_of(0x1.0000010000001p-1));
  y = exception(x, y, bits_of(-0x1.a1becap-14), bits_of(0x1.ffeb2afffffffp-2));
  return near_zero(x, zero, y, [](Word w) {
    return horner(w, bits_of(0x1.69610924deba8p-14), bits_of(0x1.86c863b66083cp-13),
                  bits_of(-0x1.8680f74e6b6bap-11), bits_of(-0x1.258a6d85633afp-9),
                  bits_of(0x1.297b9d6ffaacdp-8), bits_of(0x1.3e346def42057p-6),
                  bits_of(-0x1.e4088244f901dp-7), bits_of(-0x1.d2fa4c17c7e84p-4),
                  bits_of(-0x1.2a2ef9bb865aep-6), bits_of(0x1.8d9a941de3ac5p-2),
                  bits_of(0x1.b9d98fa5a3215p-2));
  });
}

}  // namespace samebits::numerics::real
