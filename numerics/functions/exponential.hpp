// Exponential: e^x, 2^x and e^x - 1 in binary64 steps.
//
// x = k log(2) + r with |r| <= log(2) / 2, e^x = 2^k (1 + p), p = e^r - 1 by a polynomial
// (coefficients.sollya). docs/decisions/0046-correct-rounding.md bounds the errors.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::real {

/// 2^k (1 + p), scale = 2^k, p = r + rest: rest is about r^2 / 2.
template <class Word>
struct scaled_power {
  Word scale;
  Word p;
  Word rest;
};

/// The value 2^k (1 + p), with one rounding.
template <class Word>
SAMEBITS_INLINE constexpr Word value_of(const scaled_power<Word>& e) {
  return fma(e.scale, e.p, e.scale);
}

/// The value 2^k (1 + p) rounded to odd: no error beside that of p.
template <class Word>
SAMEBITS_INLINE constexpr Word odd_value_of(const scaled_power<Word>& e) {
  const Word y = value_of(e);
  return to_odd(y, fma(e.scale, e.p, sub(e.scale, y)));
}

/// k, the whole number nearest to a number, as its bits in 2^52 + 2^51 + k and as a number.
template <class Word>
struct whole_number {
  Word shifted;
  Word value;
};
template <class Word>
SAMEBITS_INLINE constexpr whole_number<Word> nearest_whole(Word x, Word factor) {
  const Word shifter = bits_of(0x1.8p52);
  const Word shifted = fma(x, factor, shifter);
  return {shifted, sub(shifted, shifter)};
}

/// e^(r + low) 2^k, |r| <= log(2) / 2, |low| <= 2^-50.
template <class Word>
SAMEBITS_INLINE constexpr scaled_power<Word> power_of(Word r, Word low, Word shifted) {
  const Word q = horner(r, bits_of(0x1.ad932d5340b22p-26), bits_of(0x1.28ae06e3f52a9p-22),
                        bits_of(0x1.71df18d48c378p-19), bits_of(0x1.a0199955871b5p-16),
                        bits_of(0x1.a01a012ff465dp-13), bits_of(0x1.6c16c18479ce6p-10),
                        bits_of(0x1.1111111126b32p-7), bits_of(0x1.55555555506b4p-5),
                        bits_of(0x1.55555555554fep-3), bits_of(0x1.000000000000ap-1));
  const Word rest = fma(mul(q, r), r, low);
  return {(shifted + Word(std::uint64_t{1023})) << std::uint64_t{52}, add(r, rest), rest};
}

/// e^(x + low) for |x| <= 200 and |low| <= 2^-45.
template <class Word>
SAMEBITS_INLINE constexpr scaled_power<Word> exp_parts(Word x, Word low) {
  const auto k = nearest_whole(x, Word(bits_of(0x1.71547652b82fep+0)));
  const Word minus_k = neg(k.value);
  const Word upper = fma(minus_k, Word(bits_of(0x1.62e42fefap-1)), x);  // exact
  const Word lower = fma(minus_k, Word(bits_of(0x1.cf79abc9e3b3ap-40)), low);
  const Word r = add(upper, lower);
  return power_of(r, add(sub(upper, r), lower), k.shifted);
}

/// e^x for |x| <= 200.
template <class Word>
SAMEBITS_INLINE constexpr scaled_power<Word> exp_parts(Word x) {
  const auto k = nearest_whole(x, Word(bits_of(0x1.71547652b82fep+0)));
  const Word minus_k = neg(k.value);
  const Word upper = fma(minus_k, Word(bits_of(0x1.62e42fefap-1)), x);  // exact
  const Word r = fma(minus_k, Word(bits_of(0x1.cf79abc9e3b3ap-40)), upper);
  return power_of(r, Word(std::uint64_t{0}), k.shifted);
}

/// 2^x for |x| <= 200: x = k + r, and r log(2) in two parts.
template <class Word>
SAMEBITS_INLINE constexpr scaled_power<Word> exp2_parts(Word x) {
  const auto k = nearest_whole(x, Word(one));
  const Word fraction = sub(x, k.value);  // exact
  const Word log2 = bits_of(0x1.62e42fefa39efp-1);
  const Word r = mul(fraction, log2);
  const Word low = fma(fraction, Word(bits_of(0x1.abc9e3b39803fp-56)), fma(fraction, log2, neg(r)));
  return power_of(r, low, k.shifted);
}

/// The last step of functions near 1: 1 at 0.
template <class Word>
SAMEBITS_INLINE constexpr Word one_at_zero(Word x, Word y) {
  return select(magnitude(x) == Word(std::uint64_t{0}), Word(one), y);
}

/// e^x. Below 2^-40 the distance from 1 is held at 2^-40: the side of 1 decides.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_exp(Word x) {
  const Word far = away_from_zero(x, Word(bits_of(0x1p-40)));
  return one_at_zero(
      x, odd_value_of(exp_parts(clamp(far, Word(bits_of(-104.0)), Word(bits_of(89.0))))));
}

template <class Word>
SAMEBITS_INLINE constexpr Word exact_exp2(Word x) {
  const Word far = away_from_zero(x, Word(bits_of(0x1p-40)));
  return one_at_zero(
      x, odd_value_of(exp2_parts(clamp(far, Word(bits_of(-151.0)), Word(bits_of(129.0))))));
}

/// 2^k (1 + p) - 1.
template <class Word>
SAMEBITS_INLINE constexpr Word minus_one(const scaled_power<Word>& e) {
  return fma(e.scale, e.p, sub(e.scale, Word(one)));
}

/// 2^k (1 + p) - 1 rounded to odd.
template <class Word>
SAMEBITS_INLINE constexpr Word odd_minus_one(const scaled_power<Word>& e) {
  const Word rest = sub(e.scale, Word(one));
  const Word y = fma(e.scale, e.p, rest);
  return to_odd(y, fma(e.scale, e.p, sub(rest, y)));
}

/// e^x - 1. Below 1/4, where k = 0, it is the sum of x and the rest rounded to odd.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_expm1(Word x) {
  const auto e = exp_parts(clamp(x, Word(bits_of(-27.0)), Word(bits_of(89.0))));
  const Word near = select(magnitude(x) == Word(std::uint64_t{0}), x, sum_to_odd(x, e.rest));
  return select(magnitude(x) < Word(bits_of(0.25)), near, odd_minus_one(e));
}

/// tanh(x) = m / (m + 2), m = e^2x - 1. Below 2^-14 it is x - x^3 / 3, where the cube is held at
/// 2^-40 of x.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_tanh(Word x) {
  const Word size = magnitude(x);
  const Word inner = select(size < Word(bits_of(10.0)), size, Word(bits_of(10.0)));
  const Word m = minus_one(exp_parts(add(inner, inner)));
  const Word quotient = div(m, add(m, Word(bits_of(2.0))));
  const Word y = exception(size, quotient, bits_of(0x1.11734p-10), bits_of(0x1.1173397ffffffp-10));
  const Word third =
      max_word(mul(mul(size, size), Word(bits_of(0x1.5555555555555p-2))), Word(bits_of(0x1p-40)));
  const Word near = fma(neg(size), third, size);
  return with_sign(select(size < Word(bits_of(0x1p-14)), near, y), x);
}

}  // namespace samebits::numerics::real
