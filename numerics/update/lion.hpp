// Lion: the sign of an average of gradients, with decoupled weight decay (contract §12).
//
// Source: Chen et al.: Symbolic Discovery of Optimization Algorithms (2023), algorithm 2.
#pragma once

#include "numerics/bits/word.hpp"
#include "numerics/update/adam.hpp"
#include "numerics/update/constants.hpp"
#include "numerics/update/update_arithmetic.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/optimizer.hpp"

namespace samebits::numerics {

/// x if x is a NaN, +0 for zeros, else 1 with the sign of x.
template <class Word>
SAMEBITS_INLINE constexpr Word sign_of(Word x) {
  using bits = binary<element_of<Word>>;
  const Word magnitude = x & Word(~bits::sign_bit);
  const Word unit = Word(bits::one) | (x & Word(bits::sign_bit));
  const Word finite = select(magnitude == Word(0u), Word(0u), unit);
  return select(magnitude > Word(bits::inf), x, finite);
}

/// One element's step of lion; Profile is strict or fma.
template <update_profile Profile, class Arithmetic, class Word, class Number>
SAMEBITS_INLINE constexpr void lion_step(const constants_in<Number>& c, update_element<Word>& x) {
  const Word g = x.gradient;
  const Word average = averaged<Profile, Arithmetic>(Word(c.b1), x.first, Word(c.w1), g);
  x.weight = decayed<Profile, Arithmetic>(c, x.weight);
  const Word change = Arithmetic::product(Word(c.rate), sign_of(average));
  x.weight = Arithmetic::sum(x.weight, negated(change));
  x.first = averaged<Profile, Arithmetic>(Word(c.b2), x.first, Word(c.w2), g);
}

}  // namespace samebits::numerics
