// Logarithm: log(x), log2(x), log(1 + x) and softplus in binary64 steps.
//
// x = 2^k m with sqrt(1/2) <= m < sqrt(2), f = m - 1 and s = f / (m + 1):
// log(m) = 2 atanh(s) = 2 s + s^3 q(s^2) = f - s f + s^3 q(s^2), by a polynomial q
// (coefficients.sollya). docs/decisions/0046-correct-rounding.md bounds the errors.
#pragma once

#include <cstdint>

#include "numerics/bits/word.hpp"
#include "numerics/functions/binary64_steps.hpp"
#include "numerics/functions/exponential.hpp"
#include "samebits/core/config.hpp"

namespace samebits::numerics::real {

inline constexpr std::uint64_t log2_upper = bits_of(0x1.62e42fefap-1);  // 36 bits
inline constexpr std::uint64_t log2_lower = bits_of(0x1.cf79abc9e3b3ap-40);

/// log(1 + f) - f for 1 / sqrt(2) - 1 <= f <= sqrt(2) - 1; `sum` is f + 2.
template <class Word>
SAMEBITS_INLINE constexpr Word log_rest(Word f, Word sum) {
  const Word s = div(f, sum);
  const Word z = mul(s, s);
  const Word q = horner(z, bits_of(0x1.69a023029032dp-4), bits_of(0x1.f000f0789a297p-4),
                        bits_of(0x1.109d551086eadp-3), bits_of(0x1.3b17804d05d7ep-3),
                        bits_of(0x1.745d04c6757a1p-3), bits_of(0x1.c71c71fbfe87bp-3),
                        bits_of(0x1.2492492467709p-2), bits_of(0x1.9999999999bcbp-2),
                        bits_of(0x1.5555555555555p-1));
  return fma(mul(s, z), q, neg(mul(f, s)));
}

/// x = 2^k (1 + f) as k, f; x normal and above 0.
template <class Word>
struct log_parts {
  Word k;
  Word f;
};
template <class Word>
SAMEBITS_INLINE constexpr log_parts<Word> split_for_log(Word x) {
  // The exponent field of x sqrt(2), nearly, is that of 2^k.
  const std::uint64_t root = bits_of(0x1.6a09e667f3bcdp-1);
  const Word field = (x + Word(one - root)) >> std::uint64_t{52};
  const Word m = x - (field << std::uint64_t{52}) + Word(one);
  const Word k = sub(field | Word(bits_of(0x1p52)), Word(bits_of(0x1p52 + 1023)));
  return {k, sub(m, Word(one))};
}

/// log(x) + low for x normal and above 0, |low| small beside the result.
template <class Word>
SAMEBITS_INLINE constexpr Word log_of(Word x, Word low) {
  const auto [k, f] = split_for_log(x);
  const Word rest = log_rest(f, add(f, Word(bits_of(2.0))));
  const Word whole = mul(k, Word(log2_upper));  // exact
  const Word upper = add(whole, f);
  const Word error = add(sub(whole, upper), f);  // exact: |whole| > |f| or whole = 0
  const Word lower = add(error, add(fma(k, Word(log2_lower), rest), low));
  return sum_to_odd(upper, lower);
}

/// A result for x > 0: -Inf at 0 and NaN below.
template <class Word>
SAMEBITS_INLINE constexpr Word log_domain(Word x, Word y) {
  const Word zero = std::uint64_t{0};
  const Word outside = select(magnitude(x) == zero, Word(inf | sign_bit), Word(nan));
  return select(lt(zero, x), y, outside);
}

template <class Word>
SAMEBITS_INLINE constexpr Word exact_log(Word x) {
  const Word zero = std::uint64_t{0};
  return log_domain(x, log_of(select(lt(zero, x), x, Word(one)), zero));
}

/// log2(x) = k + log(m) / log(2), the quotient in two parts.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_log2(Word x) {
  const Word zero = std::uint64_t{0};
  const auto [k, f] = split_for_log(select(lt(zero, x), x, Word(one)));
  const Word rest = log_rest(f, add(f, Word(bits_of(2.0))));
  const Word factor = bits_of(0x1.71547652b82fep+0);
  const Word p = mul(f, factor);
  const Word p_low =
      fma(rest, factor, fma(f, Word(bits_of(0x1.777d0ffda0d24p-56)), fma(f, factor, neg(p))));
  return log_domain(x, sum_to_odd(k, add(p, p_low)));  // |k| > |p| or k = 0
}

/// log(1 + x). Below 2^-29 it is x - x^2 / 2, where the square is held at 2^-40 of x. From there to
/// 2^29 the sum 1 + x is exact; above, log(1 + x) = log(x) + 1 / x.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_log1p(Word x) {
  const Word zero = std::uint64_t{0};
  const Word minus_half = away_from_zero(mul(x, Word(bits_of(-0.5))), Word(bits_of(0x1p-40)));
  const Word near = select(magnitude(x) == zero, x, fma(x, minus_half, x));
  const auto large = lt(Word(bits_of(0x1p29)), x);
  const Word sum = select(large, x, add(x, Word(one)));
  const Word safe = select(lt(zero, sum), sum, Word(one));
  const Word y = log_of(safe, select(large, div(Word(one), safe), zero));
  return select(magnitude(x) < Word(bits_of(0x1p-29)), near, log_domain(sum, y));
}

/// log(1 + u) + x for 0 < u <= 1; x >= 0.
template <class Word>
SAMEBITS_INLINE constexpr Word log1p_plus(Word u, Word x) {
  const Word zero = std::uint64_t{0};
  const auto halved = Word(bits_of(0.414)) < u;  // then log(1 + u) = log(2) + log(1 + (u - 1) / 2)
  const Word f = select(halved, mul(sub(u, Word(one)), Word(bits_of(0.5))), u);
  const Word rest = log_rest(f, add(f, Word(bits_of(2.0))));
  const Word whole = select(halved, Word(log2_upper), zero);
  const Word whole_low = select(halved, Word(log2_lower), zero);
  // x and log(2) come first, f last: x > log(2) / 2 or the sum is log(2) with x or without.
  const Word first = add(x, whole);
  const Word first_error =
      add(select(whole < x, sub(x, first), sub(whole, first)), select(whole < x, whole, x));
  const auto first_larger = magnitude(f) < first;
  const Word upper = add(first, f);
  const Word error =
      add(sub(select(first_larger, first, f), upper), select(first_larger, f, first));
  return sum_to_odd(upper, add(error, add(first_error, add(whole_low, rest))));
}

/// log(1 + e^x): log1p(e^x) below 0, else x + log1p(e^-x). Above 24 the logarithm is held at 2^-40
/// of x.
template <class Word>
SAMEBITS_INLINE constexpr Word exact_softplus(Word x) {
  const Word zero = std::uint64_t{0};
  const Word size = magnitude(x);
  const auto negative = lt(x, zero);
  const Word limit = select(negative, Word(bits_of(104.0)), Word(bits_of(24.0)));
  const Word u = value_of(exp_parts(neg(select(size < limit, size, limit))));
  const Word inner = log1p_plus(u, select(negative, zero, select(size < limit, size, limit)));
  const Word held = fma(size, Word(bits_of(0x1p-40)), size);
  return select(lt(Word(bits_of(24.0)), x), held, inner);
}

}  // namespace samebits::numerics::real
