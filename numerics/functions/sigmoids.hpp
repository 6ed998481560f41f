// Sigmoids: sigmoid and the activations x sigmoid(v), x Phi(x), in binary64 steps.
//
// Near 0 the results lie next to 1/2 or x / 2, for large x next to 1 or x. These are numbers or
// ties of the destinations. There the distance is held at a size that binary64 shows, with the
// right sign.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "numerics/functions/exponential.hpp"
#include "numerics/functions/normal_tail.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::real {

/// The last step of functions near 1/2: 1/2 at 0.
template <class Word>
SAMEBITS_INLINE constexpr Word half_at_zero(Word x, Word y) {
  return select(magnitude(x) == Word(std::uint64_t{0}), Word(bits_of(0.5)), y);
}

/// sigmoid(x). Below 2^-11 it is 1/2 + x / 4 - x^3 / 48, where the cube is held at 2^-25 of x / 4.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_sigmoid(Word x) {
  const Word inner = clamp(x, Word(bits_of(-104.0)), Word(bits_of(27.0)));
  const Word y = div(Word(one), add(value_of(exp_parts(neg(inner))), Word(one)));
  const Word half = bits_of(0.5);
  const Word far = away_from_zero(x, Word(bits_of(0x1p-40)));
  const Word slope = bits_of(0x1.ffffffp-3);  // 1/4 - 2^-27
  const Word near = half_at_zero(x, fma(far, slope, half));
  Word z = select(magnitude(x) < Word(bits_of(0x1p-11)), near, y);
  z = exception(x, z, bits_of(0x1.250c02p-10), bits_of(0x1.0024a17ffffffp-1));
  z = exception(x, z, bits_of(0x1.437902p-5), bits_of(0x1.050db8fffffffp-1));
  z = exception(x, z, bits_of(0x1.b1c146p+2), bits_of(0x1.ff6ad9fffffffp-1));
  z = exception(x, z, bits_of(-0x1.2082ep-3), bits_of(0x1.dbfee0fffffffp-2));
  return exception(x, z, bits_of(-0x1.250c02p-10), bits_of(0x1.ffb6bd0000001p-2));
}

/// x sigmoid(x). From 1, sigmoid's distance is held at e^-25. Below 2^-12 the result is
/// x / 2 + x^2 / 4 - x^4 / 48: the first two terms can sum to a tie, so the last one decides.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_silu(Word x) {
  const Word inner = clamp(x, Word(bits_of(-120.0)), Word(bits_of(25.0)));
  const Word factor = select(lt(x, Word(bits_of(-120.0))), Word(bits_of(-120.0)), x);
  const Word y = div(factor, add(value_of(exp_parts(neg(inner))), Word(one)));
  const Word half = mul(x, Word(bits_of(0.5)));
  const Word square = mul(half, half);  // exact
  const Word sum = add(half, square);
  const Word fourth = mul(square, square);  // x^4 / 16
  const Word error = fma(fourth, Word(bits_of(-0x1.5555555555555p-2)), add(sub(half, sum), square));
  const Word near = select(magnitude(x) == Word(std::uint64_t{0}), x, sum_to_odd(sum, error));
  return select(magnitude(x) < Word(bits_of(0x1p-12)), near, y);
}

/// A product of binary64 numbers in two parts.
template <class Word>
struct two_parts {
  Word upper;
  Word lower;
};

/// 2 sqrt(2 / pi) (x + 0.044715 x^3) for a binary32 number x.
template <class Word>
SAMEBITS_INLINE constexpr two_parts<Word> gelu_tanh_argument(Word x) {
  const Word square = mul(x, x);  // exact
  const Word slope = bits_of(0x1.9884533d43651p+0);
  const Word cubic = bits_of(0x1.2444f2a4d8b4bp-4);
  const Word term = mul(cubic, square);
  const Word h = add(slope, term);
  // The error of this sum, whichever term is larger (Knuth's TwoSum).
  const Word second = sub(h, slope);
  const Word sum_error = add(sub(slope, sub(h, second)), sub(term, second));
  const Word product_error = fma(cubic, square, neg(term));
  const Word constants =
      fma(Word(bits_of(-0x1.6c843a29d1c70p-61)), square, Word(bits_of(-0x1.cbc0d30ebfd15p-54)));
  const Word h_low = add(sum_error, add(product_error, constants));
  const Word v = mul(x, h);
  return {v, fma(x, h_low, fma(x, h, neg(v)))};
}

/// x sigmoid(v), v = 2 sqrt(2 / pi) (x + 0.044715 x^3). Held like silu, at x = 6 for larger x.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_gelu_tanh(Word x) {
  const Word far = away_from_zero(x, Word(bits_of(0x1p-40)));
  const auto v = gelu_tanh_argument(clamp(far, Word(bits_of(-12.0)), Word(bits_of(6.0))));
  const Word factor = select(lt(x, Word(bits_of(-12.0))), Word(bits_of(-12.0)), x);
  const Word y = div(factor, add(value_of(exp_parts(neg(v.upper), neg(v.lower))), Word(one)));
  Word z = exception(x, y, bits_of(-0x1.6148dep-16), bits_of(-0x1.6147590000001p-17));
  z = exception(x, z, bits_of(-0x1.2bc17cp-8), bits_of(-0x1.2aa96f7ffffffp-9));
  return exception(x, z, bits_of(0x1.1212d8p+2), bits_of(0x1.121290bffffffp+2));
}

/// |x| up to which gelu and its gradient are computed: beyond, the result is 0 or x in every
/// destination.
template <class Word>
SAMEBITS_INLINE constexpr Word gelu_operand(Word x) {
  const Word size = magnitude(x);
  const Word limit = select(lt(x, Word(std::uint64_t{0})), Word(bits_of(14.6)), Word(bits_of(7.0)));
  return select(size < limit, max_word(size, Word(bits_of(0x1p-40))), limit);
}

/// x Phi(x).
template <class Word>
SAMEBITS_INLINE constexpr Word exact_gelu(Word x) {
  const Word a = gelu_operand(x);
  const Word tail = mul(bell(a), tail_factor(a));
  const Word phi = select(lt(x, Word(std::uint64_t{0})), tail, sub(Word(one), tail));
  Word y = mul(select(lt(x, Word(bits_of(-14.6))), Word(bits_of(-14.6)), x), phi);
  y = exception(x, y, bits_of(0x1.7adf86p-5), bits_of(0x1.88d9613ffffffp-6));
  y = exception(x, y, bits_of(-0x1.09d9ecp-13), bits_of(-0x1.09d309bffffffp-14));
  return exception(x, y, bits_of(-0x1.e8541p+0), bits_of(-0x1.b9122dbffffffp-5));
}

}  // namespace samebits::numerics::real
