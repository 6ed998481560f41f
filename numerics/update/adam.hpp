// Adam and AdamW: profiles strict and fma (contract §12).
#pragma once

#include "numerics/update/constants.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

// Template parameters of all rules:
// - Profile: the operations' order.
// - Arithmetic: a policy (numerics/update/update_arithmetic.hpp).
// - Word: std::uint32_t, SIMD lanes, or std::uint64_t (numerics/bits/word.hpp).
// - Number: std::uint64_t for Word std::uint64_t, else std::uint32_t (constants.hpp).

/// b * old + w * x. Profile strict: both products and the sum are rounded. Other profiles:
/// fma(b, old, RN(w * x)).
template <update_profile Profile, class Arithmetic, class Word>
SAMEBITS_INLINE constexpr Word averaged(Word b, Word old, Word w, Word x) {
  const Word part = Arithmetic::product(w, x);
  if constexpr (Profile == update_profile::strict) {
    return Arithmetic::sum(Arithmetic::product(b, old), part);
  } else {
    return Arithmetic::fused(b, old, part);
  }
}

/// Decoupled weight decay.
template <update_profile Profile, class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr Word decayed(const constants_in<Number>& c, Word weight) {
  if (!c.decays) return weight;
  if constexpr (Profile == update_profile::strict) {
    return Arithmetic::product(weight, Word(c.keep));
  } else {
    return Arithmetic::fused(negated(Word(c.loss)), weight, weight);
  }
}

/// x + w * weight: weight decay as a part of the gradient.
template <update_profile Profile, class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr Word with_l2(const constants_in<Number>& c, Word x, Word weight) {
  if (!c.decays) return x;
  if constexpr (Profile == update_profile::strict) {
    return Arithmetic::sum(x, Arithmetic::product(Word(c.l2), weight));
  } else {
    return Arithmetic::fused(Word(c.l2), weight, x);
  }
}

/// Replaces both states by their new averages.
template <update_profile Profile, class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr void update_averages(const constants_in<Number>& c,
                                               update_element<Word>& x) {
  const Word g = x.gradient;
  x.first = averaged<Profile, Arithmetic>(Word(c.b1), x.first, Word(c.w1), g);
  const Word square = Arithmetic::product(g, g);
  x.second = averaged<Profile, Arithmetic>(Word(c.b2), x.second, Word(c.w2), square);
}

/// d: RN(sqrt(v) / r) + e.
template <class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr Word denominator(const constants_in<Number>& c, Word second) {
  const Word root = Arithmetic::quotient(Arithmetic::square_root(second), Word(c.root));
  return Arithmetic::sum(root, Word(c.eps));
}

/// One element's step of adamw or adam; Profile is strict or fma.
template <update_rule Rule, update_profile Profile, class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr void adam_step(const constants_in<Number>& c, update_element<Word>& x) {
  if constexpr (Rule == update_rule::adamw) {
    x.weight = decayed<Profile, Arithmetic>(c, x.weight);
  } else {
    x.gradient = with_l2<Profile, Arithmetic>(c, x.gradient, x.weight);
  }
  update_averages<Profile, Arithmetic>(c, x);
  const Word d = denominator<Arithmetic>(c, x.second);
  const Word change = Arithmetic::quotient(Arithmetic::product(Word(c.rate), x.first), d);
  x.weight = Arithmetic::sum(x.weight, negated(change));
}

}  // namespace samebits::numerics
